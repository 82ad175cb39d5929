"""Exact scan: a query is compared with every row.

Rows and query are int8 with a scale each: a quarter of the bytes, and whole numbers, of which a processor multiplies
many at once (SimSIMD). What is near is compared exactly afterwards (`vector`).

Several queries at once are products of matrices, for which a block of rows is made float32 where the cache holds it.
The program sets BLAS to one thread (`thalweg/__main__.py`). BLAS's own threads wait for each other by spinning, which
takes 100 ms instead of 12 as soon as something else needs a core (docs/adr/0003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import simsimd

from storage.search.records.label_map import REMOVED

BLOCK_ROWS = 4096
"""Larger blocks leave the cache; smaller ones release the interpreter more often, which costs under load."""
SAMPLE_STEP = 16
"""Each sixteenth score tells how high the largest are, about."""
MAX_CLOSE = 5_000
"""Rows beyond k that are compared exactly at most: where more are as near, they are alike."""
SHARED_ROWS = 20_000
"""From this many rows on (a millisecond) another thread has half of them; it sleeps while nothing is asked."""
_LEAST_LENGTH = 1e-12
_DEVIATIONS = 6.0
_beside = ThreadPoolExecutor(2, thread_name_prefix="scan")


def quantise_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise (n, dim) float32 rows to (n, dim) int8 codes and (n,) float32 scales.

    row ≈ scale · codes, each number to half a scale.
    """
    scales = (np.maximum(np.abs(rows).max(axis=1, initial=0.0), _LEAST_LENGTH) / 127).astype(np.float32)
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


def error_of(scales: Any, query: np.ndarray) -> Any:
    """How far a product of a query with a row of each of these scales (a number or (n,)) may be off.

    Six standard deviations of the rounding of both, unit length each.
    """
    return _DEVIATIONS * np.hypot(scales, _scale_of(query)) / 12**0.5


def products(codes: np.ndarray, scales: np.ndarray, query: np.ndarray) -> np.ndarray:
    """(n,) float32 products of (n, dim) int8 rows, times their (n,) scales, with a (dim,) float32 query.

    Off by `error_of` at most. The interpreter goes on meanwhile.
    """
    if not len(codes):
        return np.empty(0, np.float32)
    scale = _scale_of(query)
    whole = np.rint(query / scale).astype(np.int8)
    half = len(codes) // 2 if len(codes) >= SHARED_ROWS else 0
    other = _beside.submit(_whole_products, codes[:half], whole) if half else None
    found = np.empty(len(codes), np.float32)
    found[half:] = _whole_products(codes[half:], whole)
    if other is not None:
        found[:half] = other.result()
    found *= scales
    found *= scale
    return found


def _whole_products(codes: np.ndarray, query: np.ndarray) -> np.ndarray:
    # never with `out`: each such call of SimSIMD takes a reference to None too many, until the interpreter aborts
    return np.asarray(simsimd.dot(codes, query)).reshape(-1)


def _scale_of(query: np.ndarray) -> float:
    return max(float(np.abs(query).max()), _LEAST_LENGTH) / 127


def largest_places(scores: np.ndarray, depth: int) -> np.ndarray:
    """Places of the `depth` largest of (n,) scores, all of them where there are no more."""
    if depth >= len(scores):
        return np.arange(len(scores))
    sample = scores[::SAMPLE_STEP]
    likely = 2 * depth // SAMPLE_STEP + SAMPLE_STEP
    if likely < len(
        sample
    ):  # what lies below a bound that some few exceed need not be put in order: a tenth of the time
        near = np.flatnonzero(scores >= np.partition(sample, -likely)[-likely])
        if len(near) >= depth:
            found: np.ndarray = near[np.argpartition(scores[near], -depth)[-depth:]]
            return found
    return np.argpartition(scores, -depth)[-depth:]


def largest_found(
    scores: np.ndarray, labels: np.ndarray, k: int, allowed: np.ndarray | None, margin: float
) -> np.ndarray:
    """Places of the k largest of (n,) scores of allowed labels, and of those at most `margin` below them.

    At most MAX_CLOSE more than k.
    Only as many of the largest are looked up in `allowed` as are needed: looking up all costs more than comparing them.
    """
    share = 1.0 if allowed is None else max(len(allowed), 1) / max(len(labels), 1)
    depth = int(2 * k / min(share, 1.0)) + 2 * k
    while True:
        top = largest_places(scores, depth)
        least = scores[top].min() if len(top) else 0.0
        usable = labels[top] != REMOVED
        if allowed is not None:
            places = np.minimum(np.searchsorted(allowed, labels[top]), len(allowed) - 1)
            usable &= allowed[places] == labels[top]
        chosen = top[usable]
        chosen = chosen[np.argsort(-scores[chosen], kind="stable")]
        if len(top) == len(scores) or (
            len(chosen) >= k and (least <= scores[chosen[k - 1]] - margin or len(chosen) > k + MAX_CLOSE)
        ):
            kept: np.ndarray = chosen[: k + MAX_CLOSE]
            return kept if len(kept) <= k else kept[scores[kept] >= scores[kept[k - 1]] - margin]
        depth *= 4


def close_pairs(
    codes: np.ndarray,
    scales: np.ndarray,
    queries: np.ndarray,
    k: int,
    least: float,
    margin: float,
    pause: Callable[[], None],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of (n, dim) int8 rows, times their (n,) scales, and (m, dim) queries of at least this product.

    Places of rows, numbers of queries and products, in the order of the rows. Of a query with very many pairs some are
    left out, each more than `margin` below k others. A block of rows is unpacked once for all queries; several queries
    are background work: `pause` is called after each block.
    """
    if len(queries) == 1:
        scores = products(codes, scales, queries[0])
        near = np.flatnonzero(scores >= least)
        return near, np.zeros(len(near), np.int64), scores[near]
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    best = np.full((k, len(queries)), -np.inf, np.float32)
    bounds = np.full(len(queries), least, np.float32)
    for start, block in _blocks(codes):
        found = block @ queries.T
        found *= scales[start : start + len(block), None]
        if np.count_nonzero(is_near := found >= bounds) > 2 * k * len(queries):
            best = np.partition(np.concatenate((best, found)), -k, axis=0)[-k:]
            raised = best[0] > 0  # a row that is gone has a product of 0: below that, k others may be none
            bounds[raised] = np.maximum(bounds, best[0] - margin)[raised]
            is_near = found >= bounds
        rows, numbers = np.nonzero(is_near)
        parts.append((rows + start, numbers, found[rows, numbers]))
        pause()
    if not parts:
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)
    places, whose, near = (np.concatenate(column) for column in zip(*parts, strict=True))
    return places, whose, near


def _blocks(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows as float32 with the place of their first, each good until the next is asked for."""
    buffer = np.empty((min(BLOCK_ROWS, len(codes)), codes.shape[1]), np.float32)
    for start in range(0, len(codes), BLOCK_ROWS):
        some = codes[start : start + BLOCK_ROWS]
        block = buffer[: len(some)]
        np.copyto(block, some)
        yield start, block
