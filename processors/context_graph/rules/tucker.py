"""Tucker decomposition of a memory's views: which combinations of views and features carry most of it.

The tensor is T[i, j, k] = eᵢ[k]·eⱼ[k] over thirteen views in the common space. It is never made: its two Gram matrices
follow from the thirteen vectors, so that a decomposition takes milliseconds on one thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from processors.context_graph.rules.groups import VIEW_COUNT
from processors.context_graph.rules.views.outputs import COMMON_DIM

DEFAULT_RANKS = (4, 4, 128)
MOST_RANKS = (VIEW_COUNT, VIEW_COUNT, COMMON_DIM)


@dataclass(frozen=True)
class Tucker:
    """A truncated decomposition by higher-order SVD."""

    core: np.ndarray
    """[r1, r2, r3]"""
    views: np.ndarray
    """[13, r1]: the leading combinations of views."""
    strengths: np.ndarray
    """[r1]: the singular values of these combinations."""
    explained_variance: float
    compression_ratio: float


def compression_ratio(ranks: Sequence[int]) -> float:
    """How many times fewer numbers core and factors have than the tensor."""
    r1, r2, r3 = ranks
    kept = r1 * r2 * r3 + VIEW_COUNT * r1 + VIEW_COUNT * r2 + COMMON_DIM * r3
    return VIEW_COUNT * VIEW_COUNT * COMMON_DIM / kept


def decompose(vectors: np.ndarray, ranks: Sequence[int] = DEFAULT_RANKS) -> Tucker:
    """[13, 256] views in the common space -> core and factors of the ranks asked for."""
    r1, r2, r3 = ranks
    vectors = np.asarray(vectors, np.float64)
    energy = (vectors**2).sum(0)
    whole = float((energy**2).sum())
    by_view, views = _leading((vectors * energy) @ vectors.T)
    features = _features(vectors)[:, :r3]
    left, right = views[:, :r1].T @ vectors, views[:, :r2].T @ vectors
    core = np.zeros((r1, r2, r3))
    core[:, :, : features.shape[1]] = (left[:, None, :] * right[None, :, :]) @ features
    explained = float((core**2).sum()) / whole if whole > 0 else 0.0
    return Tucker(core, views[:, :r1], np.sqrt(by_view[:r1]), min(1.0, explained), compression_ratio(ranks))


def _leading(gram: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors, the largest first; the largest entry of each vector is positive."""
    values, vectors = np.linalg.eigh(gram)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    largest = vectors[np.abs(vectors).argmax(0), np.arange(vectors.shape[1])]
    return values, vectors * np.where(largest < 0, -1.0, 1.0)


def _features(vectors: np.ndarray) -> np.ndarray:
    """[256, n]: an orthonormal basis of what products of two views span, what carries most first.

    The tensor is symmetric in its views: 91 different products span its third mode, so that a Gram matrix of 91 rows
    stands for one of 256.
    """
    first, second = np.triu_indices(VIEW_COUNT)
    products = vectors[first] * vectors[second] * np.where(first == second, 1.0, np.sqrt(2.0))[:, None]
    values, combinations = _leading(products @ products.T)
    kept = values > max(float(values[0]), 1e-300) * 1e-12
    return np.asarray(products.T @ combinations[:, kept] / np.sqrt(values[kept]))
