"""Bayesian optimisation: a Gaussian process over what was tried says what to try next."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

LENGTH = 0.1
NOISE = 0.01
STARTS, ROUNDS, CANDIDATES = 8, 24, 200

_erf = np.vectorize(math.erf, otypes=[float])


def maximised(
    objective: Callable[[np.ndarray], float],
    start: Sequence[float],
    limits: Sequence[tuple[float, float]],
    chance: np.random.Generator,
) -> tuple[np.ndarray, float, float]:
    """The best (d,) point that was tried, its value, and the start's value; of equal points the first."""
    low, high = np.array(limits).T
    tried = [np.array(start, np.float64), *(chance.uniform(low, high) for _ in range(STARTS))]
    values = [objective(point) for point in tried]
    for _ in range(ROUNDS):
        candidates = chance.uniform(low, high, (CANDIDATES, len(low)))
        gains = expected_improvement(np.array(tried), np.array(values), candidates)
        tried.append(candidates[int(np.argmax(gains))])
        values.append(objective(tried[-1]))
    best = int(np.argmax(np.round(values, 12)))  # of equal ones the first
    return tried[best], values[best], values[0]


def expected_improvement(tried: np.ndarray, values: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """(m,) by how much each of (m, d) candidates may beat the best of (n,) values at (n, d) points."""
    mean, deviation = _predicted(tried, values, candidates)
    gain = mean - values.max()
    scaled = gain / deviation
    density = np.exp(-0.5 * scaled**2) / math.sqrt(2 * math.pi)
    below = 0.5 * (1 + _erf(scaled / math.sqrt(2)))
    improvement: np.ndarray = gain * below + deviation * density
    return improvement


def _predicted(tried: np.ndarray, values: np.ndarray, candidates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(m,) mean and standard deviation at the candidates."""
    level = values.mean()
    known = _kernel(tried, tried) + NOISE**2 * np.eye(len(tried))
    between = _kernel(candidates, tried)
    mean = level + between @ np.linalg.solve(known, values - level)
    explained = np.sum(between * np.linalg.solve(known, between.T).T, axis=1)
    return mean, np.sqrt(np.maximum(1 - explained, 1e-9))


def _kernel(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    apart = ((left[:, None, :] - right[None, :, :]) ** 2).sum(axis=2)
    return np.exp(-apart / (2 * LENGTH**2))
