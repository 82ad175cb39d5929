"""The 78 cross-correlations of thirteen views: how far each two of them agree, times their synergy."""

from __future__ import annotations

import numpy as np

from processors.context_graph.rules.groups import VIEW_COUNT

PAIRS = np.triu_indices(VIEW_COUNT, 1)
"""(first views, second views) of the 78 pairs, row by row."""
PAIR_COUNT = len(PAIRS[0])
NEGLIGIBLE = 0.01
"""A correlation below it is 0."""


def agreement(alignments: np.ndarray) -> np.ndarray:
    """[…, 13] -> […, 78]: the geometric mean of each two alignments.

    It is 0 where one of them is not positive, and NaN where one is missing.
    """
    roots = np.sqrt(np.maximum(alignments, 0.0))  # NaN stays NaN
    return roots[..., PAIRS[0]] * roots[..., PAIRS[1]]


def correlations(alignments: np.ndarray, synergy: np.ndarray) -> np.ndarray:
    """[…, 13] and the synergy matrix -> […, 78]; what is negligible or missing is 0."""
    found = np.nan_to_num(agreement(alignments)) * synergy[PAIRS]
    return np.where(np.abs(found) < NEGLIGIBLE, 0.0, found)


def profiled(alignments: np.ndarray, synergy: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """[13] -> [78]: the correlations as a profile's weights modulate them; as they are without one."""
    found = correlations(alignments, synergy)
    if weights is None:
        return found
    scaled = np.sqrt(weights / weights.mean())
    return np.asarray(found * scaled[PAIRS[0]] * scaled[PAIRS[1]] * (0.5 + 0.5 * np.nan_to_num(agreement(alignments))))


def strongest_pair(correlated: np.ndarray) -> tuple[str, str]:
    """The names of the two views that correlate most, `("E1", "E12")`."""
    place = int(np.argmax(correlated))
    return f"E{PAIRS[0][place] + 1}", f"E{PAIRS[1][place] + 1}"
