"""Corrections of drift: what a search adds to the scores of its best results.

Goal and memories stay as they are. Only the order of a search's first REORDERED results changes, never which they are:
so recall at ten stays what it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

import numpy as np

from processors.context_graph.rules.drift import MATTER, Baseline, Severity, WindowDrift, scalar
from processors.context_graph.rules.drift_series import Trend
from processors.context_graph.rules.groups import weighted_mean

Strategy = Literal["none", "threshold_adjustment", "weight_rebalancing", "goal_reinforcement", "emergency_intervention"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
REORDERED = 10
TOP = 5
"""The results whose mean alignment with the goal a correction raises."""
DOSES: Mapping[Strategy, float] = {
    "threshold_adjustment": 0.36,
    "weight_rebalancing": 0.25,
    "goal_reinforcement": 0.25,
    "emergency_intervention": 0.2,
}
"""What full alignment adds to a score of 0 to 1, or what lacks of it takes away."""
TREND_FACTORS: Mapping[Trend, float] = {"improving": 0.8, "stable": 1.0, "worsening": 1.25}
FORCED: Strategy = "goal_reinforcement"
"""What `force` does where nothing has drifted."""
FORCED_FACTOR = 1.1
GAIN = 0.02
"""What a correction without a target raises the alignment by, or half of what any order could."""
SUCCESS = 0.01
STEP = 1.2
MOST_STEPS = 5
LARGEST_DOSE = 1.0
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Correction:
    """What is added to a score; all 0 changes nothing.

    `goal_weight` × the alignment of the weighted views with the goal, less `penalty` × what lacks of the `threshold`.
    """

    strategy: Strategy
    goal_weight: float = 0.0
    view_weights: tuple[float, ...] = tuple((MATTER / MATTER.sum()).tolist())
    threshold: float | None = None
    penalty: float = 0.0

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> Correction:
        """The correction that a row or an event tells."""
        weights = tuple(float(weight) for weight in row["view_weights"])
        return cls(row["strategy"], row["goal_weight"], weights, row.get("threshold"), row["penalty"])

    @property
    def is_empty(self) -> bool:
        return self.goal_weight == 0 and self.penalty == 0

    def bonus(self, aligned: np.ndarray) -> np.ndarray:
        """[n]: what is added to the scores of memories with these [n, 13] alignments with the goal."""
        towards = weighted_mean(np.asarray(aligned, np.float64), np.array(self.view_weights))
        lacking = 0.0 if self.threshold is None else np.maximum(0.0, self.threshold - scalar(aligned))
        added: np.ndarray = self.goal_weight * towards - self.penalty * lacking
        return added


NONE = Correction("none")


@dataclass(frozen=True)
class Probe:
    """The first REORDERED results of one search: [n] scores as the engine gave them, [n, 13] alignments."""

    scores: np.ndarray
    aligned: np.ndarray


@dataclass(frozen=True)
class Corrected:
    """A correction that was tried. `reachable`: the highest alignment that any reordering gives."""

    correction: Correction
    factor: float
    iterations: int
    before: float
    after: float
    target: float
    reachable: float

    @property
    def success(self) -> bool:
        return self.after >= self.target - _TOLERANCE or self.after - self.before >= SUCCESS - _TOLERANCE


def strategy_of(severity: Severity, trend: Trend, *, force: bool = False) -> Strategy:
    """The strategy that a severity calls for."""
    if severity == "none":
        return FORCED if force else "none"
    if severity == "moderate":
        return "goal_reinforcement" if trend == "worsening" else "weight_rebalancing"
    return "threshold_adjustment" if severity == "mild" else "emergency_intervention"


def made(strategy: Strategy, dose: float, baseline: Baseline, drift: WindowDrift) -> Correction:
    """The correction of a strategy at a dose."""
    dose = min(LARGEST_DOSE, dose)
    if strategy == "none" or dose == 0:
        return replace(NONE, strategy=strategy)
    if strategy == "threshold_adjustment":
        return Correction(strategy, threshold=_threshold(baseline), penalty=dose)
    weights = NONE.view_weights if strategy == "goal_reinforcement" else _moved(drift)
    if strategy == "emergency_intervention":
        return Correction(strategy, dose, weights, _threshold(baseline), dose)
    return Correction(strategy, dose, weights)


def top_alignment(probes: Sequence[Probe], correction: Correction) -> float:
    """The mean alignment with the goal of the first TOP results of each search that found any."""
    means = [
        float(
            scalar(one.aligned)[np.argsort(-(one.scores + correction.bonus(one.aligned)), kind="stable")[:TOP]].mean()
        )
        for one in probes
        if len(one.scores)
    ]
    return float(np.mean(means)) if means else 0.0


def reachable_alignment(probes: Sequence[Probe]) -> float:
    """The highest that any order of the first REORDERED gives."""
    means = [float(np.sort(scalar(one.aligned))[-TOP:].mean()) for one in probes if len(one.scores)]
    return float(np.mean(means)) if means else 0.0


def correct(
    strategy: Strategy,
    factor: float,
    baseline: Baseline,
    drift: WindowDrift,
    probes: Sequence[Probe],
    before: float,
    target: float | None,
) -> Corrected:
    """The correction of a strategy, tried on searches at most MOST_STEPS times.

    Without a target the dose rises from the usual one until searches give GAIN more than with no correction. With
    one it is the smallest dose that reaches it; one that is reached with no correction lifts that in force.
    `before`: what searches give now.
    """
    reachable, plain = reachable_alignment(probes), top_alignment(probes, NONE)
    dose = DOSES[strategy] * factor
    tried: dict[float, float] = {}

    def after(dose: float) -> float:
        return tried.setdefault(dose, top_alignment(probes, made(strategy, dose, baseline, drift)))

    if target is None:
        wanted = min(plain + GAIN, (plain + reachable) / 2)
        for _ in range(MOST_STEPS):
            if after(dose) >= wanted - _TOLERANCE or dose >= LARGEST_DOSE:
                break
            dose = min(LARGEST_DOSE, dose * STEP)
    else:
        wanted = target
        dose = 0.0 if plain >= target - _TOLERANCE else _smallest(after, target)
    chosen = made(strategy, dose, baseline, drift)
    return Corrected(chosen, dose / DOSES[strategy], max(1, len(tried)), before, after(dose), wanted, reachable)


def _smallest(after: Any, target: float) -> float:
    """The smallest dose found in MOST_STEPS halvings that reaches the target; the largest where none does."""
    low, high = 0.0, LARGEST_DOSE
    for _ in range(MOST_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if after(middle) >= target - _TOLERANCE else (middle, high)
    return high


def _threshold(baseline: Baseline) -> float:
    return float(np.clip(baseline.alignment, -1.0, 1.0))


def _moved(drift: WindowDrift) -> tuple[float, ...]:
    """Weights by how far each view of the matter fell, in standard errors; even where none did."""
    fallen = np.where(MATTER, np.maximum(0.0, np.nan_to_num(drift.deviations)), 0.0)
    total = float(fallen.sum())
    return tuple((fallen / total).tolist()) if total > 0 else NONE.view_weights
