"""Thresholds by domain, and how they learn: running means, drift, and arms that are tried."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

STRICTNESS: Mapping[str, float] = {
    "Code": 0.9,
    "Medical": 1.0,
    "Legal": 0.8,
    "Creative": 0.2,
    "Research": 0.5,
    "General": 0.0,
}
DOMAINS = tuple(STRICTNESS)
GENERAL = "General"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Its value at strictness s is `general + s · by_strictness`; learning keeps it in [least, most]."""

    name: str
    general: float
    by_strictness: float
    least: float
    most: float

    def base(self, domain: str) -> float:
        """What it is before anything is learned."""
        return round(self.general + STRICTNESS[domain] * self.by_strictness, 6)

    def clamped(self, value: float) -> float:
        return min(self.most, max(self.least, value))


THRESHOLDS: Mapping[str, Threshold] = {
    each.name: each
    for each in (
        Threshold("theta_opt", 0.75, 0.10, 0.60, 0.90),
        Threshold("theta_acc", 0.70, 0.08, 0.55, 0.85),
        Threshold("theta_warn", 0.55, 0.05, 0.40, 0.70),
        Threshold("theta_dup", 0.90, 0.0, 0.80, 0.98),
        Threshold("theta_edge", 0.50, 0.0, 0.50, 0.85),
        Threshold("theta_joh", 0.5, 0.0, 0.5, 0.5),
        Threshold("theta_kur", 0.80, 0.0, 0.65, 0.95),
        Threshold("theta_ent_high", 0.7, 0.0, 0.55, 0.85),
        Threshold("theta_coh_low", 0.4, 0.0, 0.25, 0.55),
        Threshold("gate", 0.75, 0.15, 0.65, 0.95),
        Threshold("memory_sim", 0.5, 0.15, 0.35, 0.75),
        Threshold("reflex", 0.8, 0.1, 0.65, 0.95),
        Threshold("consolidation", 0.1, 0.1, 0.05, 0.30),
        Threshold("dream_activity", 0.15, 0.0, 0.0, 1.0),
        Threshold("semantic_leap", 0.7, -0.1, 0.5, 0.85),
        Threshold("shortcut_conf", 0.7, 0.1, 0.5, 0.9),
        Threshold("obs_low", 0.3, 0.1, 0.1, 0.5),
        Threshold("obs_high", 0.75, 0.1, 0.6, 0.95),
        Threshold("drift_slope", 0.01, -0.009, 0.0005, 0.02),
    )
}
OBSERVED = ("memory_sim", "theta_edge")
"""What each judged result shows: the similarity, and the cosine of the two texts (E1)."""
ORDERED = ("theta_opt", "theta_acc", "theta_warn")
GAP = 0.01
"""By at least this each of ORDERED stands above the next."""
ALPHA, SIGMA = 0.2, 0.05
FIRST_OBSERVED = 10
"""As many observations make the level from which drift is measured."""
NOTICED, STRONG = 2.0, 3.0
TIE = 1e-9
ARMS = (0.70, 0.72, 0.75, 0.77, 0.80)
"""Of theta_opt in General; in a stricter domain they lie as much higher as its base."""
EXPLORATION = 1.5


def values_of(domain: str, learned: Mapping[str, float]) -> dict[str, float]:
    """Every threshold of a domain: what was learned, else its base."""
    return {name: learned.get(name, each.base(domain)) for name, each in THRESHOLDS.items()}


def in_order(values: Mapping[str, float]) -> dict[str, float]:
    """The values with opt > acc > warn: what stands too high is lowered."""
    kept = dict(values)
    for above, below in pairwise(ORDERED):
        kept[below] = min(kept[below], round(kept[above] - GAP, 6))
    return kept


def ewma(mean: float, observed: float, alpha: float = ALPHA) -> float:
    """The running mean after an observation, which weighs 0.1 to 0.3."""
    alpha = min(0.3, max(0.1, alpha))
    return alpha * observed + (1 - alpha) * mean


def drift(mean: float, base: float, sigma: float = SIGMA) -> float:
    """By how many standard deviations a running mean lies off its base."""
    return abs(mean - base) / sigma


def proposed_level(score: float) -> int | None:
    """The level that a drift asks for: above three deviations 3, from two on 2, else None."""
    if score > STRONG + TIE:
        return 3
    return 2 if score >= NOTICED - TIE else None


@dataclass(frozen=True, slots=True)
class Observed:
    """What a threshold was seen to cut: how often, from which level, and the running mean."""

    count: int = 0
    reference: float = 0.0
    mean: float = 0.0

    def after(self, value: float) -> Observed:
        """With another observation; the first ones make the reference."""
        count = self.count + 1
        if count <= FIRST_OBSERVED:
            reference = self.reference + (value - self.reference) / count
            return Observed(count, reference, reference)
        return Observed(count, self.reference, ewma(self.mean, value))

    @property
    def drift(self) -> float | None:
        """In standard deviations; None before there is a reference."""
        return drift(self.mean, self.reference) if self.count >= FIRST_OBSERVED else None


def arms_of(domain: str) -> list[float]:
    """The values of theta_opt that are tried in a domain."""
    shift = THRESHOLDS["theta_opt"].base(domain) - THRESHOLDS["theta_opt"].base(GENERAL)
    return [round(arm + shift, 6) for arm in ARMS]


def ucb(mean: float, pulls: int, own: int) -> float | None:
    """The upper confidence bound of an arm that was pulled `own` of `pulls` times; None before its first."""
    return None if own == 0 else mean + EXPLORATION * math.sqrt(math.log(pulls + 1) / own)


def violation_budget(pulls: int) -> float:
    """Of 100: what may still go wrong while arms are tried."""
    return 100 * math.exp(-0.01 * pulls)


def f1(values: Sequence[float], is_relevant: Sequence[bool], cut: float) -> float:
    """How well a cut tells what is relevant: 2·TP / (2·TP + FP + FN), 0 where it finds nothing right."""
    right = sum(1 for value, is_right in zip(values, is_relevant, strict=True) if is_right and value >= cut)
    wrong = sum(1 for value, is_right in zip(values, is_relevant, strict=True) if is_right != (value >= cut))
    return 2 * right / (2 * right + wrong) if right else 0.0
