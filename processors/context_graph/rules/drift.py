"""Drift: how far the memories of a window have moved from those in which a goal was found.

Both are compared by their purpose vectors: thirteen alignments with the goal. A window has moved when their mean has
fallen, or when it points elsewhere; each is counted in standard errors of such a mean, so that what one conversation
varies by itself is no drift. Views made of time alone do not count: the clock moves them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from processors.context_graph.rules.views.catalogue import VIEWS

Severity = Literal["none", "mild", "moderate", "severe"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
MATTER = np.array([view.basis != "time" for view in VIEWS])
"""[13]: the views that say what a memory is about."""
WINDOW = 20
"""Memories whose mean is taken; the mean of more is not thought surer, because what follows on each other is alike."""
LEAST = 10
"""Fewer memories tell no drift."""
MILD, MODERATE, SEVERE = 2.0, 4.0, 4.6
"""From this many standard errors on."""
SCALAR_MILD, SCALAR_MODERATE, SCALAR_SEVERE = 0.01, 0.05, 0.10
"""From such a fall of the mean alignment on, where the baseline has too few memories to have a standard error."""
SHOWN = 3
"""Views that are named as the most drifted."""
_TOLERANCE = 1e-9
_SPREAD, _TURN = 0.067, 0.145
"""What one memory's alignment and direction usually deviate: known of conversations, and counted as _KNOWN memories."""
_KNOWN = 5
_INFLATION = 1.35
"""How much further the mean of neighbours deviates than that of memories drawn by lot, counted as _KNOWN windows."""


@dataclass(frozen=True)
class Baseline:
    """The purpose vectors of the memories in which the goal was found. Standard errors are of the mean of WINDOW."""

    mean: np.ndarray
    """[13], NaN where a view is not available"""
    deviations: np.ndarray
    """[13]: standard errors of each view's mean"""
    alignment: float
    scalar_error: float
    angle_error: float
    """In radians."""
    samples: int

    @property
    def has_errors(self) -> bool:
        """Whether there are enough memories for a standard error."""
        return self.samples >= LEAST


@dataclass(frozen=True)
class WindowDrift:
    """What a window is against a baseline. `distance`: in standard errors, of fall and rotation together."""

    severity: Severity
    alignment: float
    baseline: float
    drift_score: float
    rotation: float
    """1 − cosine of the two mean purpose vectors."""
    distance: float
    views: np.ndarray
    """[13]: mean alignments of the window"""
    falls: np.ndarray
    """[13]: how far each view is below the baseline"""
    deviations: np.ndarray
    """[13]: the same in standard errors"""
    samples: int

    @property
    def most_drifted(self) -> list[str]:
        """Labels of the views of the matter that moved furthest, the furthest first."""
        moved = np.where(MATTER, np.abs(np.nan_to_num(self.deviations)), -1.0)
        return [VIEWS[place].label for place in np.argsort(-moved, kind="stable")[:SHOWN]]


def scalar(aligned: np.ndarray) -> np.ndarray:
    """[n]: the mean of each of [n, 13] purpose vectors over the views of the matter; 0 where none is."""
    known = MATTER & ~np.isnan(aligned)
    sums = np.where(known, aligned, 0.0).sum(axis=1)
    means: np.ndarray = np.divide(sums, known.sum(axis=1), out=np.zeros(len(aligned)), where=known.any(axis=1))
    return means


def baseline_of(runs: Sequence[np.ndarray]) -> Baseline:
    """The baseline of at least one memory. `runs`: [n, 13] purpose vectors of memories that followed on each other."""
    aligned = np.concatenate(runs)
    mean, used = _mean(aligned), _used(aligned)
    matter = np.nan_to_num(aligned[:, used])
    direction = matter.mean(axis=0)
    count, length = len(aligned), max(float(np.linalg.norm(direction)), _TOLERANCE)
    apart = matter - direction
    along = np.outer(apart @ direction, direction) / length**2
    spread = _pooled(float((scalar(aligned) - scalar(aligned).mean()).var()), count, _SPREAD)
    turn = _pooled(float(((apart - along) ** 2).sum(axis=1).mean()) / length**2, count, _TURN)
    windows = [run[start : start + WINDOW] for run in runs for start in range(len(run) - WINDOW + 1)]
    means = np.array([_mean(window) for window in windows]).reshape(len(windows), len(VIEWS))
    level = float(scalar(aligned).mean())
    fallen = scalar(means) - level
    turned = np.array([_angle(one[used], direction) for one in means])
    number = sum(len(run) // WINDOW for run in runs)
    chance = math.sqrt(1 / WINDOW)
    error = spread * chance * _inflation(fallen, spread * chance, number)
    apart_by_view = np.nan_to_num(aligned - mean)
    per_view = np.sqrt((apart_by_view**2).mean(axis=0) + _TOLERANCE)
    own = math.sqrt(1 + WINDOW / count)  # the baseline's mean has an error too
    return Baseline(
        mean,
        per_view * chance * own * error / (spread * chance),
        level,
        error * own,
        turn * chance * _inflation(turned, turn * chance, number) * own,
        count,
    )


def drift_of(baseline: Baseline, aligned: np.ndarray) -> WindowDrift:
    """The drift of a window of at least one memory, of its [n, 13] purpose vectors."""
    views, used = _mean(aligned), _used(aligned) & ~np.isnan(baseline.mean)
    fewer = math.sqrt(max(1.0, WINDOW / len(aligned)))
    level = float(scalar(aligned).mean())
    angle = _angle(np.nan_to_num(views[used]), np.nan_to_num(baseline.mean[used]))
    fall = max(0.0, baseline.alignment - level)
    distance = math.hypot(fall / baseline.scalar_error, angle / baseline.angle_error) / fewer
    falls = baseline.mean - views
    return WindowDrift(
        severity_of(distance) if baseline.has_errors else scalar_severity(baseline.alignment, level),
        level,
        baseline.alignment,
        fall,
        1.0 - math.cos(angle),
        distance,
        views,
        falls,
        falls / (baseline.deviations * fewer),
        len(aligned),
    )


def severity_of(distance: float) -> Severity:
    """What a distance in standard errors is called."""
    return SEVERITIES[sum(distance >= least - _TOLERANCE for least in (MILD, MODERATE, SEVERE))]


def scalar_severity(baseline: float, current: float) -> Severity:
    """What a fall of the mean alignment is called where nothing is known of how far it falls by itself."""
    fall = baseline - current
    is_more = fall > SCALAR_MILD + _TOLERANCE
    return SEVERITIES[is_more + sum(fall >= least - _TOLERANCE for least in (SCALAR_MODERATE, SCALAR_SEVERE))]


def _used(aligned: np.ndarray) -> np.ndarray:
    used: np.ndarray = MATTER & ~np.isnan(aligned).all(axis=0)
    return used


def _mean(aligned: np.ndarray) -> np.ndarray:
    """[13]: the mean of each view over the memories that have it; NaN where none has."""
    known = ~np.isnan(aligned)
    sums = np.where(known, aligned, 0.0).sum(axis=0)
    mean: np.ndarray = np.divide(sums, known.sum(axis=0), out=np.full(len(VIEWS), np.nan), where=known.any(axis=0))
    return mean


def _pooled(variance: float, count: int, usual: float) -> float:
    """The deviation of few memories, drawn towards the usual one."""
    return math.sqrt((count * variance + _KNOWN * usual**2) / (count + _KNOWN))


def _inflation(deviations: np.ndarray, error: float, windows: int) -> float:
    measured = float((deviations**2).mean()) / error**2 if len(deviations) else 0.0
    return max(1.0, math.sqrt((windows * measured + _KNOWN * _INFLATION**2) / (windows + _KNOWN)))


def _angle(one: np.ndarray, other: np.ndarray) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    if lengths < _TOLERANCE:
        return 0.0
    return math.acos(min(1.0, max(-1.0, float(np.nan_to_num(one) @ other) / lengths)))
