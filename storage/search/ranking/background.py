"""How near a query's vector is to texts in general: the measure of what stands out among them."""

from __future__ import annotations

import numpy as np

SAMPLE = 512
PRIOR_MEAN, PRIOR_DEVIATION, PRIOR_COUNT = 0.2, 0.1, 30
"""The prior, and how many texts it counts for: a few texts have no spread of their own."""


def sample_of(labels: np.ndarray) -> np.ndarray:
    """Every n-th of (n,) sorted labels, at most SAMPLE.

    Labels are hashes, so that this is a random sample, and the same for the same texts everywhere.
    """
    return labels[:: max(1, -(-len(labels) // SAMPLE))]


def background(sampled: np.ndarray) -> tuple[float, float]:
    """Mean and standard deviation of a vector's cosines to texts, by those to a sample.

    NaN where a text of the sample has no vector.
    """
    sampled = sampled[~np.isnan(sampled)].astype(np.float64)
    count = len(sampled) + PRIOR_COUNT
    mean = (float(sampled.sum()) + PRIOR_COUNT * PRIOR_MEAN) / count
    squares = float(((sampled - mean) ** 2).sum()) + PRIOR_COUNT * (PRIOR_DEVIATION**2 + (PRIOR_MEAN - mean) ** 2)
    return mean, float((squares / count) ** 0.5)
