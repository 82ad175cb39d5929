"""The four levels of recalibration: what each changes, as a pure function of what was judged.

1  a threshold follows what it cuts: by how much that has drifted, the threshold moves too
2  probabilities are corrected so that they agree best with the judgements
3  values of theta_opt are tried by Thompson sampling, each on a judged result drawn by chance
4  theta_edge, memory_sim and gate are set where they tell relevant results best (F1), by Bayesian optimisation

Fewer than ten judgements change nothing. Chance is drawn from a seed that the caller gives.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from processors.context_graph.rules.calibration import (
    INSUFFICIENT,
    LEAST_JUDGEMENTS,
    VIEWS,
    Calibrations,
    JudgedResult,
    recalibrated,
)
from processors.context_graph.rules.optimiser import maximised
from processors.context_graph.rules.thresholds import (
    ARMS,
    OBSERVED,
    THRESHOLDS,
    Observed,
    arms_of,
    f1,
    in_order,
)
from processors.memory.rules.relevance import Calibration

LEVELS: Mapping[int, str] = {
    1: "EWMA drift adjustment",
    2: "Temperature scaling",
    3: "Thompson Sampling exploration",
    4: "Bayesian meta-optimization",
}
KEPT = 500
"""The newest judgements count."""
PULLS = 20
"""Arms that one exploration pulls."""
DIGITS = 6
TARGET = "theta_opt"
_CUTS: Mapping[str, Callable[[JudgedResult, Calibrations], float | None]] = {
    "theta_edge": lambda judged, _: None if np.isnan(judged.views[0]) else float(judged.views[0]),
    "memory_sim": lambda judged, _: judged.similarity,
    "gate": lambda judged, calibrations: calibrations.confidence(judged),
}
"""What level 4 sets, and what of a judged result each cuts. A judgement says nothing of what is the same: theta_dup
stays."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What a namespace has learned from `judgements` of its results; level 2 knew `fitted` of them."""

    judgements: int = 0
    fitted: int = 0
    calibrations: Calibrations = field(default_factory=Calibrations)
    observed: Mapping[str, Observed] = field(default_factory=lambda: dict.fromkeys(OBSERVED, Observed()))
    successes: tuple[int, ...] = (0,) * len(ARMS)
    failures: tuple[int, ...] = (0,) * len(ARMS)

    @classmethod
    def of(cls, row: Mapping[str, Any] | None) -> Learned:
        """From the row of `context_calibrations`."""
        if row is None:
            return cls()
        seen = zip(row["observed_counts"], row["observed_references"], row["observed_means"], strict=True)
        calibrations = Calibrations(
            Calibration(row["relevance_temperature"], row["relevance_offset"]),
            Calibration(row["similarity_temperature"], row["similarity_offset"]),
            tuple(row["temperatures"]),
        )
        return cls(
            row["judgements"],
            row["fitted_judgements"],
            calibrations,
            {name: Observed(*each) for name, each in zip(OBSERVED, seen, strict=True)},
            tuple(row["arm_successes"]),
            tuple(row["arm_failures"]),
        )

    def to_row(self) -> dict[str, Any]:
        """The columns of `context_calibrations`, without times."""
        relevance, similarity = self.calibrations.relevance, self.calibrations.similarity
        seen = [self.observed[name] for name in OBSERVED]
        return {
            "judgements": self.judgements,
            "fitted_judgements": self.fitted,
            "relevance_temperature": relevance.temperature,
            "relevance_offset": relevance.offset,
            "similarity_temperature": similarity.temperature,
            "similarity_offset": similarity.offset,
            "temperatures": list(self.calibrations.temperatures),
            "observed_counts": [each.count for each in seen],
            "observed_references": [each.reference for each in seen],
            "observed_means": [each.mean for each in seen],
            "arm_successes": list(self.successes),
            "arm_failures": list(self.failures),
        }

    def after(self, judged: JudgedResult) -> Learned:
        """With another judgement: what the thresholds cut was observed once more."""
        seen = dict(self.observed)
        for name in OBSERVED:
            value = _CUTS[name](judged, self.calibrations)
            seen[name] = seen[name] if value is None else seen[name].after(value)
        return replace(self, judgements=self.judgements + 1, observed=seen)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a recalibration comes to. `thresholds`: those of the domain that change, by name."""

    learned: Learned
    thresholds: Mapping[str, float]
    changes: Sequence[Mapping[str, Any]]
    action: str
    description: str
    reason: str | None = None


def decide(
    level: int,
    learned: Learned,
    thresholds: Mapping[str, float],
    judgements: Sequence[JudgedResult],
    domain: str,
    chance: np.random.Generator,
) -> Decision:
    """What a level changes. `thresholds`: all of the domain; `judgements`: the newest, at most KEPT."""
    if len(judgements) < LEAST_JUDGEMENTS:
        sentence = f"{len(judgements)} results were judged; {LEAST_JUDGEMENTS} are needed. Nothing has changed."
        return Decision(learned, {}, [], "none", sentence, INSUFFICIENT)
    if level == 1:
        return _follow(learned, thresholds)
    if level == 2:
        return _correct(learned, judgements)
    if level == 3:
        return _explore(learned, thresholds, judgements, domain, chance)
    return _optimise(learned, thresholds, judgements, chance)


def _follow(learned: Learned, thresholds: Mapping[str, float]) -> Decision:
    moved, seen = dict(thresholds), dict(learned.observed)
    for name, each in learned.observed.items():
        if each.drift:
            moved[name] = _kept(name, thresholds[name] + each.mean - each.reference)
            seen[name] = replace(each, reference=each.mean)
    sentence = "Each observed threshold moved as far as what it cuts has drifted since it was set."
    return _with_thresholds(replace(learned, observed=seen), thresholds, moved, "follow_drift", sentence)


def _correct(learned: Learned, judgements: Sequence[JudgedResult]) -> Decision:
    before, after = learned.calibrations, recalibrated(judgements, learned.calibrations)
    pairs = [(f"E{n}.temperature", before.temperatures[n - 1], after.temperatures[n - 1]) for n in range(1, VIEWS + 1)]
    for name in ("relevance", "similarity"):
        old, new = getattr(before, name), getattr(after, name)
        pairs += [(f"{name}.{part}", getattr(old, part), getattr(new, part)) for part in ("temperature", "offset")]
    changes = [_change(name, old, new) for name, old, new in pairs if old != new]
    sentence = "Probabilities are corrected as agrees best with what was judged: `relevance` changes in searches."
    return Decision(
        replace(learned, calibrations=after, fitted=learned.judgements), {}, changes, "fit_temperatures", sentence
    )


def _explore(
    learned: Learned,
    thresholds: Mapping[str, float],
    judgements: Sequence[JudgedResult],
    domain: str,
    chance: np.random.Generator,
) -> Decision:
    known = [(each.similarity, each.is_relevant) for each in judgements if each.similarity is not None]
    if len(known) < LEAST_JUDGEMENTS:
        return Decision(learned, {}, [], "none", "Too few judged results have a similarity.", INSUFFICIENT)
    arms, right, wrong = arms_of(domain), np.array(learned.successes), np.array(learned.failures)
    for _ in range(PULLS):
        arm = int(np.argmax(chance.beta(right + 1, wrong + 1)))
        similarity, is_relevant = known[int(chance.integers(len(known)))]
        (right if (similarity >= arms[arm]) == is_relevant else wrong)[arm] += 1
    best = int(np.argmax((right + 1) / (right + wrong + 2)))
    pulled = replace(learned, successes=tuple(map(int, right)), failures=tuple(map(int, wrong)))
    sentence = f"{PULLS} pulls: {TARGET} is the arm that told relevant results best."
    return _with_thresholds(pulled, thresholds, {**thresholds, TARGET: arms[best]}, "pull_arms", sentence)


def _optimise(
    learned: Learned,
    thresholds: Mapping[str, float],
    judgements: Sequence[JudgedResult],
    chance: np.random.Generator,
) -> Decision:
    known: dict[str, tuple[list[float], list[bool]]] = {}
    for name, cut in _CUTS.items():
        pairs = [(v, each.is_relevant) for each in judgements if (v := cut(each, learned.calibrations)) is not None]
        if len(pairs) >= LEAST_JUDGEMENTS:
            known[name] = [value for value, _ in pairs], [is_relevant for _, is_relevant in pairs]
    names = list(known)

    def utility(point: np.ndarray) -> float:
        return float(np.mean([f1(*known[name], cut) for name, cut in zip(names, point, strict=True)]))

    limits = [(THRESHOLDS[name].least, THRESHOLDS[name].most) for name in names]
    best, value, start = maximised(utility, [thresholds[name] for name in names], limits, chance)
    moved = {**thresholds, **{name: _kept(name, float(at)) for name, at in zip(names, best, strict=True)}}
    sentence = f"The mean F1 of {', '.join(names)} on what was judged is {value:.3f}; it was {start:.3f}."
    return _with_thresholds(learned, thresholds, moved if value > start else thresholds, "optimise", sentence)


def _with_thresholds(
    learned: Learned, before: Mapping[str, float], moved: Mapping[str, float], action: str, sentence: str
) -> Decision:
    after = in_order(moved)
    new = {name: after[name] for name in after if after[name] != before[name]}
    changes = [_change(name, before[name], value) for name, value in new.items()]
    return Decision(learned, new, changes, action, sentence)


def _kept(name: str, value: float) -> float:
    return round(THRESHOLDS[name].clamped(value), DIGITS)


def _change(name: str, old: float, new: float) -> dict[str, Any]:
    return {"name": name, "old": round(old, DIGITS), "new": round(new, DIGITS)}
