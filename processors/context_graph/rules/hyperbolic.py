"""REM: memories as points of a Poincaré ball, walks through it, and distances in it."""

from __future__ import annotations

import numpy as np

DIMENSIONS = 64
MAX_NORM = 0.99999
STEP = 0.1
DIRECTIONS, TEMPERATURE = 8, 2.0
STEPS = 20
"""Of one walk."""
LEAP = 0.7
"""Two points at least this far apart are far apart in meaning."""
_LEAST = 1e-12


def to_ball(vectors: np.ndarray) -> np.ndarray:
    """(n, up to 64) points of the ball for (n, dim) vectors.

    They are the principal components, at radius tanh of their norm. Of few vectors there are fewer components.
    """
    centred = vectors.astype(np.float64) - vectors.mean(axis=0)
    values, vectors_of = np.linalg.eigh(centred @ centred.T)
    kept = slice(None, -DIMENSIONS - 1, -1)
    components = vectors_of[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))
    norms = np.linalg.norm(components, axis=1, keepdims=True)
    points: np.ndarray = components / np.maximum(norms, _LEAST) * np.minimum(np.tanh(norms), MAX_NORM)
    return points


def distances(points: np.ndarray, others: np.ndarray) -> np.ndarray:
    """(…, m) Poincaré distances of (…, dim) points from (m, dim) others."""
    own = np.sum(points * points, axis=-1)[..., None]
    theirs = np.sum(others * others, axis=-1)
    squares = np.maximum(own + theirs - 2.0 * (points @ others.T), 0.0)
    apart: np.ndarray = np.arccosh(1.0 + 2.0 * squares / np.maximum((1.0 - own) * (1.0 - theirs), _LEAST))
    return apart


def step_length(points: np.ndarray) -> np.ndarray:
    """(…) how far one step goes from (…, dim) points: the shorter, the nearer to the edge."""
    length: np.ndarray = STEP * (1.0 - np.sum(points * points, axis=-1)) / 2.0
    return length


def mobius_add(points: np.ndarray, moves: np.ndarray) -> np.ndarray:
    """(…, dim) Möbius sums of points and moves, inside the ball."""
    inner = np.sum(points * moves, axis=-1, keepdims=True)
    own, theirs = (np.sum(each * each, axis=-1, keepdims=True) for each in (points, moves))
    above = (1.0 + 2.0 * inner + theirs) * points + (1.0 - own) * moves
    summed = above / np.maximum(1.0 + 2.0 * inner + own * theirs, _LEAST)
    norms = np.linalg.norm(summed, axis=-1, keepdims=True)
    within: np.ndarray = summed * np.minimum(1.0, MAX_NORM / np.maximum(norms, _LEAST))
    return within


def walk(starts: np.ndarray, known: np.ndarray, chance: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Walk from each start, by preference away from what is known.

    Returns (n,) distances of the ends from the nearest of the (m, dim) known points, and (m,) the least distance at
    which a walk passed each of these.
    """
    count, dim = starts.shape
    points, passed = starts, np.full(len(known), np.inf)
    nearest = np.zeros(count)
    for _ in range(STEPS):
        directions = chance.standard_normal((count, DIRECTIONS, dim))
        directions /= np.maximum(np.linalg.norm(directions, axis=-1, keepdims=True), _LEAST)
        moves = directions * step_length(points)[:, None, None]
        reached = mobius_add(np.broadcast_to(points[:, None, :], moves.shape), moves)
        away = distances(reached, known).min(axis=-1)
        weights = np.exp((away - away.max(axis=1, keepdims=True)) / TEMPERATURE)
        drawn = chance.random((count, 1)) * weights.sum(axis=1, keepdims=True)
        chosen = np.minimum((np.cumsum(weights, axis=1) < drawn).sum(axis=1), DIRECTIONS - 1)
        points = reached[np.arange(count), chosen]
        at = distances(points, known)
        passed, nearest = np.minimum(passed, at.min(axis=0)), at.min(axis=1)
    return nearest, passed
