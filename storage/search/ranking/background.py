"""How near a query's vector is to texts in general: the measure of what stands out among them."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SAMPLE = 512
PRIOR_MEAN, PRIOR_DEVIATION, PRIOR_COUNT = 0.2, 0.1, 30
"""The prior, and how many texts it counts for: a few texts have no spread of their own."""


def background(
    cosines: Callable[[np.ndarray, np.ndarray], np.ndarray], vector: np.ndarray, labels: np.ndarray
) -> tuple[float, float]:
    """Mean and standard deviation of a vector's cosines to the texts of sorted labels, by an even sample.

    Labels are hashes, so that every n-th of them is a random sample, and the same for the same texts everywhere.
    """
    sample = labels[:: max(1, -(-len(labels) // SAMPLE))]
    sampled = cosines(vector, sample).astype(np.float64) if len(sample) else np.empty(0)
    sampled = sampled[~np.isnan(sampled)]
    count = len(sampled) + PRIOR_COUNT
    mean = (float(sampled.sum()) + PRIOR_COUNT * PRIOR_MEAN) / count
    squares = float(((sampled - mean) ** 2).sum()) + PRIOR_COUNT * (PRIOR_DEVIATION**2 + (PRIOR_MEAN - mean) ** 2)
    return mean, float((squares / count) ** 0.5)
