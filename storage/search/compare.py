"""Comparing a query with every row: two threads share a large scan, and neither waits for one that is busy.

The program sets BLAS to one thread (`thalweg/__main__.py`). BLAS's own threads wait for each other by spinning, which
takes 100 ms instead of 12 as soon as something else needs a core (docs/adr/0003).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

SHARED_ROWS = 20_000
"""From so many rows on (two milliseconds) a second thread is worth being asked."""


def cosines(rows: np.ndarray, query: np.ndarray) -> np.ndarray:
    """(n,) products of (n, dim) float32 rows with a (dim,) query."""
    found = np.empty(len(rows), np.float32)
    if len(rows) < SHARED_ROWS:
        return np.matmul(rows, query, out=found)
    half = len(rows) // 2
    other = _helper().submit(np.matmul, rows[half:], query, out=found[half:])
    np.matmul(rows[:half], query, out=found[:half])
    if other.cancel():  # the helper is with another search
        np.matmul(rows[half:], query, out=found[half:])
    else:
        other.result()
    return found


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="compare")
