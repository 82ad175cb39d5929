"""Groups of memories that are near each other: K-means on unit vectors, without chance."""

from __future__ import annotations

import math

import numpy as np

LEAST = 3
"""A group of fewer memories is none."""
MOST_ROUNDS = 100


def cluster_count(memories: int) -> int:
    """In how many clusters this many memories are looked at: √(n/2), two at least, n/3 at most."""
    return max(1, min(memories // LEAST, max(2, math.ceil(math.sqrt(memories / 2)))))


def clusters(rows: np.ndarray, count: int) -> list[np.ndarray]:
    """The clusters of (n, dim) rows of length 1, largest first: the sorted places of each one's rows.

    Starts from the first row and those farthest from all that were taken, so that the same rows in the same order give
    the same. Clusters of fewer than LEAST rows are left out.
    """
    if len(rows) < LEAST:
        return []
    centres = rows[_spread(rows, min(count, len(rows)))]
    nearest = np.full(len(rows), -1)
    for _ in range(MOST_ROUNDS):
        before, nearest = nearest, np.argmax(rows @ centres.T, axis=1)
        if np.array_equal(before, nearest):
            break
        sums = (np.arange(len(centres))[:, None] == nearest).astype(rows.dtype) @ rows
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        centres = np.where(lengths > 0, sums / np.maximum(lengths, 1e-12), centres)
    found = [np.flatnonzero(nearest == number) for number in range(len(centres))]
    return sorted((places for places in found if len(places) >= LEAST), key=lambda places: (-len(places), places[0]))


def _spread(rows: np.ndarray, count: int) -> list[int]:
    chosen = [0]
    similarity = rows @ rows[0]
    for _ in range(count - 1):
        chosen.append(int(np.argmin(similarity)))
        similarity = np.maximum(similarity, rows @ rows[chosen[-1]])
    return chosen
