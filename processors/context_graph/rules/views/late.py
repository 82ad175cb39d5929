"""E12: each token of the query by its best match among a memory's (MaxSim)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storage.search.vectors.token_vectors import STEP

MOST_QUERY_TOKENS = 64
"""Of a longer query this many tokens are compared, evenly spread."""
_BLOCK = 1024
"""Token rows that are multiplied at once: a block stays in the cache, and BLAS keeps to one thread."""


def token_alignments(query: np.ndarray | None, rows: Sequence[np.ndarray | None]) -> np.ndarray:
    """(k, WIDTH) int8 rows and (n, WIDTH) of each memory -> mean best cosines; NaN without tokens."""
    found = np.full(len(rows), np.nan)
    places = [place for place, row in enumerate(rows) if row is not None and len(row)]
    if query is None or not len(query) or not places:
        return found
    step = -(-len(query) // MOST_QUERY_TOKENS)
    asked = query[::step].astype(np.float32).T * np.float32(STEP * STEP)
    stored = [row for row in rows if row is not None and len(row)]
    codes = np.concatenate(stored)
    cosines = np.empty((len(codes), asked.shape[1]), np.float32)
    for start in range(0, len(codes), _BLOCK):
        cosines[start : start + _BLOCK] = codes[start : start + _BLOCK].astype(np.float32) @ asked
    starts = np.cumsum([0, *map(len, stored[:-1])])
    found[places] = np.maximum.reduceat(cosines, starts, axis=0).mean(1)
    return found
