"""Whether a session still is what it was: how near its memories are to purpose and recalls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from processors.context_graph.rules.drift import (
    MILD,
    MODERATE,
    SCALAR_MILD,
    SCALAR_MODERATE,
    SCALAR_SEVERE,
    SEVERE,
    SEVERITIES,
    Severity,
    WindowDrift,
)
from processors.context_graph.rules.groups import VIEW_COUNT

SELF_NODE = "00000000-0000-0000-0000-000000000000"
ALPHA = 0.3
"""Share of a new memory in the purpose of a session."""
MOST_TRAJECTORY = 1000
RECALLED = 20
"""Memories that were recalled last and are held against the purpose."""
REFLECT_BELOW = 0.55
STATUSES = ("Healthy", "Warning", "Degraded", "Critical")
"""By severity of drift."""
HEALTHY, WARNING, DEGRADED = 0.9, 0.7, 0.5
_COHERENCES = (1.0, HEALTHY, WARNING, DEGRADED, 0.0)
_DISTANCES = (0.0, MILD, MODERATE, SEVERE, 2 * SEVERE)
_FALLS = (0.0, SCALAR_MILD, SCALAR_MODERATE, SCALAR_SEVERE, 2 * SCALAR_SEVERE)


@dataclass(frozen=True, slots=True)
class Ego:
    """A session's purpose and how far it is its own. `is_provisional`: there is no goal to hold it against yet."""

    purpose: tuple[float, ...]
    identity_coherence: float
    status: str
    coherence_with_actions: float
    trajectory_length: int
    is_provisional: bool


def running_purpose(purposes: Sequence[np.ndarray]) -> np.ndarray:
    """[13]: the running mean of purpose vectors, oldest first; 0 where a view is not there."""
    mean: np.ndarray | None = None
    for one in purposes:
        known = np.nan_to_num(np.asarray(one, np.float64))
        mean = known if mean is None else (1 - ALPHA) * mean + ALPHA * known
    return np.zeros(VIEW_COUNT) if mean is None else mean


def identity_coherence(drift: WindowDrift, *, has_errors: bool) -> float:
    """1 where memories are as the goal's; HEALTHY, WARNING, DEGRADED where a worse severity begins."""
    if has_errors:
        return float(np.interp(drift.distance, _DISTANCES, _COHERENCES))
    return float(np.interp(drift.drift_score, _FALLS, _COHERENCES))


def identity_status(severity: Severity) -> str:
    """The status of a session whose last memories have drifted this far."""
    return STATUSES[SEVERITIES.index(severity)]


def alike(purpose: np.ndarray, recalled: Sequence[np.ndarray]) -> float:
    """The cosine of a purpose and the mean one of recalled memories; 0 where one is not there."""
    if not len(recalled):
        return 0.0
    mean = np.nan_to_num(np.stack(recalled)).mean(axis=0)
    length = float(np.linalg.norm(mean) * np.linalg.norm(purpose))
    return float(np.clip(mean @ purpose / length, -1.0, 1.0)) if length > 0 else 0.0
