"""Exact scan: a query is compared with every row. Two threads share a large scan; neither waits for a busy one.

Rows are int8 with a scale each, a quarter of the bytes; a block of them is made float32 where the cache holds it, which
is twice as quick as reading float32 from memory. What is near is compared exactly afterwards (`vector`).

The program sets BLAS to one thread (`thalweg/__main__.py`). BLAS's own threads wait for each other by spinning, which
takes 100 ms instead of 12 as soon as something else needs a core (docs/adr/0003).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

from storage.search.records.label_map import REMOVED

SPLIT_ROWS = 20_000
"""From this many rows (about 1 ms of work) splitting the scan over two threads pays off."""
BLOCK_ROWS = 4096
"""Larger blocks leave the cache; smaller ones release the interpreter more often, which costs under load."""
SAMPLE_STEP = 16
"""Each sixteenth score tells how high the largest are, about."""
MAX_CLOSE = 5_000
"""Rows beyond k that are compared exactly at most: where more are as near, they are alike."""
SPARE_BUFFERS = 2
_buffers: list[np.ndarray] = []


def quantise_rows(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Quantise (n, dim) float32 rows to (n, dim) int8 codes and (n,) float32 scales.

    row ≈ scale · codes, each number to half a scale.
    """
    scales = (np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1e-12) / 127).astype(np.float32)
    return np.rint(rows / scales[:, None]).astype(np.int8), scales


def error_of(scale: float) -> float:
    """How far a product with a row of this scale may be off: six standard deviations of the rounding."""
    return 6.0 * scale / 12**0.5


def products(codes: np.ndarray, scales: np.ndarray, query: np.ndarray) -> np.ndarray:
    """(n,) products of (n, dim) int8 rows, times their (n,) scales, with a (dim,) float32 query."""
    found = np.empty(len(codes), np.float32)
    if len(codes) < SPLIT_ROWS:
        _multiply(codes, query, found)
    else:
        half = len(codes) // 2
        other = _helper().submit(_multiply, codes[half:], query, found[half:])
        _multiply(codes[:half], query, found[:half])
        if other.cancel():  # the helper is with another search
            _multiply(codes[half:], query, found[half:])
        else:
            other.result()
    found *= scales
    return found


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


def _multiply(codes: np.ndarray, query: np.ndarray, found: np.ndarray) -> None:
    for start, block in _blocks(codes):
        np.matmul(block, query, out=found[start : start + len(block)])


def _blocks(codes: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of rows as float32 with the place of their first, each good until the next is asked for."""
    dim = codes.shape[1]
    try:
        buffer = _buffers.pop()
    except IndexError:
        buffer = np.empty(0, np.float32)
    if buffer.size < BLOCK_ROWS * dim:
        buffer = np.empty(BLOCK_ROWS * dim, np.float32)
    for start in range(0, len(codes), BLOCK_ROWS):
        some = codes[start : start + BLOCK_ROWS]
        block = buffer[: some.size].reshape(some.shape)
        np.copyto(block, some)
        yield start, block
    if len(_buffers) < SPARE_BUFFERS:
        _buffers.append(buffer)


@cache
def _helper() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="compare")
