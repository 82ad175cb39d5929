"""Confidence of a belief: six dimensions, the overall value, labels, freshness, corroboration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

WEIGHTS: Mapping[str, float] = {
    "source_reliability": 0.25,
    "method_quality": 0.15,
    "internal_consistency": 0.20,
    "temporal_freshness": 0.15,
    "corroboration": 0.15,
    "domain_applicability": 0.10,
}
"""Weight of each dimension; their order is the order of a belief's columns."""

DEFAULT_OVERALL = 0.7
FLOOR = 0.001
"""Below it a dimension counts as this much: one zero would make everything zero."""
LABELS = ((0.9, "very high"), (0.75, "high"), (0.5, "moderate"), (0.25, "low"))
HALF_LIFE_DAYS: Mapping[str, float] = {
    "timeless": math.inf,
    "stable": 365.0,
    "professional": 90.0,
    "current": 7.0,
    "ephemeral": 1.0 / 24,
}
DEFAULT_HALF_LIFE_DAYS = 30.0
RECENCY_RATE = 0.01
INDEPENDENT_EVIDENCE = 0.4
"""What one more source adds when its reliability is not given."""
SECONDS_PER_DAY = 86_400.0


class ConfidenceError(ValueError):
    """A confidence that cannot be used; the message names the dimension, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class Confidence:
    """A belief's confidence: the overall value and the dimensions that were given or derived.

    `origin` of the overall: `caller`, `computed` or `default`.
    """

    overall: float
    origin: str
    dimensions: Mapping[str, float]

    def as_object(self) -> dict[str, float]:
        return {"overall": self.overall, **self.dimensions}


def read_confidence(given: Any) -> Confidence:
    """The confidence that a caller means by an object, a bare number or nothing. Raises ConfidenceError."""
    if given is None:
        return Confidence(DEFAULT_OVERALL, "default", {})
    if not isinstance(given, Mapping):
        return Confidence(_unit("overall", given), "caller", {})
    for name in given:
        if name != "overall" and name not in WEIGHTS:
            raise ConfidenceError(f"has no dimension {str(name)[:40]!r}; choose from overall, {', '.join(WEIGHTS)}.")
    dimensions = {name: _unit(name, given[name]) for name in WEIGHTS if name in given}
    if "overall" in given:
        return Confidence(_unit("overall", given["overall"]), "caller", dimensions)
    if dimensions:
        return Confidence(overall_of(dimensions), "computed", dimensions)
    return Confidence(DEFAULT_OVERALL, "default", {})


def _unit(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ConfidenceError(f"has {name} {str(value)[:40]!r}; it must be a number from 0 to 1.")
    return float(value)


def overall_of(dimensions: Mapping[str, float], weights: Mapping[str, float] = WEIGHTS) -> float:
    """The weighted geometric mean over the dimensions that are present, in [0, 1]."""
    weight = sum(weights[name] for name in dimensions)
    logs = sum(weights[name] * math.log(max(FLOOR, value)) for name, value in dimensions.items())
    return min(1.0, math.exp(logs / weight))


def label_of(overall: float) -> str:
    """very high, high, moderate, low, very low."""
    return next((label for least, label in LABELS if overall >= least), "very low")


def age_days(since: datetime, now: datetime) -> float:
    """Days from one moment to the other, never below 0."""
    return max(0.0, (now - since).total_seconds()) / SECONDS_PER_DAY


def temporal_freshness(domain_path: Sequence[str], age: float) -> float:
    """How fresh something of this age (days) is in its class of domain. 1 when new, one half after the half-life."""
    half_life = next((HALF_LIFE_DAYS[part] for part in domain_path if part in HALF_LIFE_DAYS), DEFAULT_HALF_LIFE_DAYS)
    return float(0.5 ** (age / half_life))


def recency(age: float) -> float:
    """The share of recency in a rank: e^(-.01 · days), one half after 69.3 days."""
    return math.exp(-RECENCY_RATE * age)


def evidence_of(source_reliability: float | None) -> float:
    """r · i of one source: half its reliability, .4 when that is not given."""
    return INDEPENDENT_EVIDENCE if source_reliability is None else source_reliability / 2


def corroboration(doubts: Sequence[float]) -> float:
    """CO = 1 - Π(1 - r·i) over sources; `doubts` are the factors 1 - r·i."""
    return 1.0 - math.prod(doubts)


def ladder(count: int) -> float:
    """The least overall of a belief that this many distinct sources confirm: .5, .65, .8."""
    return 0.5 if count <= 1 else 0.65 if count == 2 else 0.8


def under_tension(confidence: Confidence, consistency: float | None, count: int = 1) -> Confidence:
    """The confidence with internal_consistency as tensions leave it (None: there were none). Only a computed overall
    follows, and never below what its sources confirm."""
    if consistency is None:
        return confidence
    dimensions = {**confidence.dimensions, "internal_consistency": consistency}
    overall = confidence.overall
    if confidence.origin == "computed":
        overall = max(overall_of(dimensions), ladder(count) if count > 1 else 0.0)
    return Confidence(overall, confidence.origin, dimensions)
