"""Calibration: how well stated probabilities agree with judgements, and what corrects them.

A judgement says of a result whether it was relevant, with what the search had said of it. What the search said is a
probability `p`; its correction is `σ(logit(p) / T + b)`. A temperature T alone draws all towards 1/2 or away from it;
a similarity of 0.6 of which one in ten is right lies on the wrong side of 1/2, so that `b` is needed too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from processors.memory.rules.relevance import LEAST, UNCHANGED, Calibration

LEAST_JUDGEMENTS = 10
BINS = 10
GRID = 20
OFFSETS = np.linspace(-4.0, 4.0, 33)
DOUBT = 10
"""As many judgements as this count for what was believed before: ten that agree do not make a certainty."""
RANGE = (0.5, 2.0)
RANGES: Mapping[int, tuple[float, float]] = {5: (0.8, 2.5), 7: (0.5, 1.5), 9: (1.0, 3.0), 13: (0.7, 2.0)}
"""Of the temperatures of views, by embedder; RANGE of the others."""
START: Mapping[int, float] = {5: 1.2, 7: 0.9, 9: 1.5, 13: 1.1}
VIEWS = 13
STATUSES = ((0.05, "Excellent"), (0.10, "Good"), (0.15, "Acceptable"), (0.25, "Poor"))
CRITICAL, INSUFFICIENT = "Critical", "insufficient_data"
DESCRIPTIONS = {
    "Excellent": "What is said to be probable is right about as often as was said.",
    "Good": "The stated probabilities are off by less than a tenth.",
    "Acceptable": "The stated probabilities are off by a tenth and more: recalibrate when there are more judgements.",
    "Poor": "The stated probabilities mislead: recalibrate with level 2.",
    "Critical": "The stated probabilities say next to nothing: recalibrate with level 2.",
    INSUFFICIENT: f"Fewer than {LEAST_JUDGEMENTS} results were judged: `update_synergy_matrix` judges one.",
}


@dataclass(frozen=True, slots=True)
class JudgedResult:
    """A result that was judged: what its search had said of it, None where it said nothing.

    `prior`: its relevance before calibration; `views`: 13 alignments, NaN of a view that said nothing.
    """

    is_relevant: bool
    views: np.ndarray
    similarity: float | None = None
    prior: float | None = None

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> JudgedResult:
        """From a row of `context_judgements`."""
        return cls(row["is_relevant"], np.array(row["alignments"], np.float64), row["similarity"], row["prior"])


@dataclass(frozen=True, slots=True)
class Calibrations:
    """What corrects each probability; the temperatures are those of the views, E1 to E13."""

    relevance: Calibration = UNCHANGED
    similarity: Calibration = UNCHANGED
    temperatures: tuple[float, ...] = field(
        default_factory=lambda: tuple(START.get(n, 1.0) for n in range(1, VIEWS + 1))
    )

    def confidence(self, judged: JudgedResult) -> float | None:
        """The probability that was, or now would be, said of a result: its relevance, else its similarity."""
        if judged.prior is not None:
            return self.relevance.corrected(judged.prior)
        return None if judged.similarity is None else self.similarity.corrected(judged.similarity)


@dataclass(frozen=True, slots=True)
class Metrics:
    """ECE, MCE and Brier score, 0 to 1, None of fewer than LEAST_JUDGEMENTS."""

    count: int
    ece: float | None = None
    mce: float | None = None
    brier: float | None = None

    @property
    def status(self) -> str:
        """By the ECE: Excellent, Good, Acceptable, Poor, Critical, or insufficient_data."""
        if self.ece is None:
            return INSUFFICIENT
        return next((name for most, name in STATUSES if self.ece < most), CRITICAL)


def measured(probabilities: np.ndarray, is_right: np.ndarray) -> Metrics:
    """Of (n,) probabilities and (n,) bool; ten bins of equal width."""
    count = len(probabilities)
    if count < LEAST_JUDGEMENTS:
        return Metrics(count)
    gaps, shares = _gaps(probabilities, is_right)
    brier = float(np.mean((probabilities - is_right) ** 2))
    return Metrics(count, float(gaps @ shares), float(gaps.max()), brier)


def shown_metrics(metrics: Metrics) -> dict[str, Any]:
    """As answers show them, beside what is wanted."""
    return {
        "ece": _rounded(metrics.ece),
        "ece_target": 0.05,
        "ece_acceptable": 0.10,
        "mce": _rounded(metrics.mce),
        "mce_target": 0.10,
        "mce_acceptable": 0.20,
        "brier": _rounded(metrics.brier),
        "brier_target": 0.10,
        "brier_acceptable": 0.15,
        "sample_count": metrics.count,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 6)


def ece_of(probabilities: np.ndarray, is_right: np.ndarray) -> float:
    """The expected calibration error of (n,) probabilities, whatever n."""
    gaps, shares = _gaps(probabilities, is_right)
    return float(gaps @ shares)


def _gaps(probabilities: np.ndarray, is_right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(filled bins,) how far accuracy and mean probability lie apart, and the share of each bin."""
    bins = np.minimum(BINS - 1, np.floor(BINS * probabilities + 1e-9).astype(int))
    sizes = np.bincount(bins, minlength=BINS)
    filled = sizes > 0
    said = np.bincount(bins, probabilities, BINS)[filled] / sizes[filled]
    right = np.bincount(bins, is_right.astype(np.float64), BINS)[filled] / sizes[filled]
    return np.abs(right - said), sizes[filled] / sizes.sum()


def metrics_of(judgements: Sequence[JudgedResult], calibrations: Calibrations) -> Metrics:
    """How well the probabilities that would be said now agree with what was judged."""
    pairs = [(p, each.is_relevant) for each in judgements if (p := calibrations.confidence(each)) is not None]
    return measured(np.array([p for p, _ in pairs]), np.array([is_right for _, is_right in pairs], bool))


def fitted(
    probabilities: np.ndarray,
    is_right: np.ndarray,
    *,
    temperatures: tuple[float, float] = RANGE,
    offsets: np.ndarray = OFFSETS,
) -> Calibration | None:
    """The correction with the least Brier score on a grid; None of fewer than LEAST_JUDGEMENTS.

    `offsets`: those that are tried, `[0]` for a temperature alone. Of equal ones the first stands.
    """
    if len(probabilities) < LEAST_JUDGEMENTS:
        return None
    kept = np.clip(probabilities, LEAST, 1 - LEAST)
    logits = np.log(kept / (1 - kept))
    grid = np.linspace(*temperatures, GRID)
    corrected = 1 / (1 + np.exp(-(logits / grid[:, None, None] + offsets[None, :, None])))
    missed = np.mean((corrected - is_right) ** 2, axis=2)
    changed = np.mean((corrected - kept) ** 2, axis=2)
    total = missed + DOUBT / len(kept) * changed
    best, place = np.unravel_index(int(np.argmin(np.round(total, 12))), total.shape)
    return Calibration(float(grid[best]), float(offsets[place]))


def recalibrated(judgements: Sequence[JudgedResult], now: Calibrations) -> Calibrations:
    """The corrections that agree best with what was judged; one without enough judgements stays."""
    said = [each for each in judgements if each.prior is not None]
    found = [each for each in judgements if each.prior is None and each.similarity is not None]
    priors = np.array([each.prior for each in said], np.float64)
    similarities = np.array([each.similarity for each in found], np.float64)
    return Calibrations(
        fitted(priors, _right(said)) or now.relevance,
        fitted(similarities, _right(found)) or now.similarity,
        tuple(_temperature(judgements, number, now.temperatures[number - 1]) for number in range(1, VIEWS + 1)),
    )


def _temperature(judgements: Sequence[JudgedResult], embedder: int, now: float) -> float:
    known, is_right = view_judgements(judgements, embedder)
    limits = RANGES.get(embedder, RANGE)
    best = fitted(known, is_right, temperatures=limits, offsets=np.zeros(1))
    return now if best is None else best.temperature


def view_judgements(judgements: Sequence[JudgedResult], embedder: int) -> tuple[np.ndarray, np.ndarray]:
    """(n,) what a view said of results, 0 to 1, and (n,) whether they were relevant."""
    known = [each for each in judgements if not np.isnan(each.views[embedder - 1])]
    return np.array([max(0.0, each.views[embedder - 1]) for each in known]), _right(known)


def view_metrics(judgements: Sequence[JudgedResult], embedder: int, temperature: float) -> Metrics:
    """How well what a view says agrees with what was judged, at this temperature."""
    said, is_right = view_judgements(judgements, embedder)
    kept = np.clip(said, LEAST, 1 - LEAST)
    return measured(1 / (1 + (1 / kept - 1) ** (1 / temperature)), is_right)


def _right(judgements: Sequence[JudgedResult]) -> np.ndarray:
    return np.array([each.is_relevant for each in judgements], bool)
