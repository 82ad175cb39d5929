"""All pairs of vectors that are near to each other, exactly, in a fraction of the products.

The vectors are turned so that their first dimensions have most of what they differ in. The product of these, and of the
lengths of what is left, is never below the cosine: only pairs that it leaves are computed whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

BLOCK = 256
FIRST_DIMENSIONS = 96
FEW = 1000
"""Of so few vectors all products take less than the turning."""
MARGIN = 1e-4
"""What rounding may take from a bound."""
_MANY = 0.02
"""With a larger share of a block's pairs left it is quicker to compute the block whole."""


class Block(NamedTuple):
    """The pairs of some rows with all before them. `end`: the row behind these; pairs as (k,) rows and cosines."""

    end: int
    first: np.ndarray
    second: np.ndarray
    cosines: np.ndarray


def near_pairs(vectors: np.ndarray, least: float) -> Iterator[Block]:
    """The pairs (first > second) of (n, dim) unit vectors with at least this cosine, block by block."""
    if not len(vectors):
        return
    bounds = _bounds(vectors)
    for start in range(0, len(vectors), BLOCK):
        end = min(start + BLOCK, len(vectors))
        first, second = np.nonzero(bounds[start:end] @ bounds[:end].T >= least - MARGIN)
        if len(first) > _MANY * (end - start) * end:
            whole = vectors[start:end] @ vectors[:end].T
            first, second = np.nonzero(whole >= least)
            cosines = whole[first, second]
        else:
            cosines = np.einsum("ij,ij->i", vectors[start + first], vectors[second])
        first = first + start
        kept = (second < first) & (cosines >= least)
        yield Block(end, first[kept], second[kept], np.minimum(cosines[kept], 1.0))


def _bounds(vectors: np.ndarray) -> np.ndarray:
    """(n, k) rows whose products are at least the cosines."""
    if vectors.shape[1] <= FIRST_DIMENSIONS or len(vectors) <= FEW:
        return vectors
    _, axes = np.linalg.eigh(vectors.T @ vectors)
    turned = vectors @ axes[:, ::-1]  # the last axes of `eigh` are those with most
    rest = np.linalg.norm(turned[:, FIRST_DIMENSIONS:], axis=1, keepdims=True)
    return np.ascontiguousarray(np.hstack([turned[:, :FIRST_DIMENSIONS], rest]), np.float32)
