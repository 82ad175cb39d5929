"""Sparse vectors: a few numbered features with weights, of one text or of many at once."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Sparse:
    """(k,) distinct feature numbers, int64, and their (k,) float32 weights."""

    numbers: np.ndarray
    weights: np.ndarray


EMPTY = Sparse(np.empty(0, np.int64), np.empty(0, np.float32))


def sparse_of(counts: Mapping[int, float], most: int | None = None) -> Sparse:
    """The features of a count, by number; only the `most` heaviest where there are more."""
    if not counts:
        return EMPTY
    kept = sorted(counts)
    if most is not None and len(kept) > most:
        kept = sorted(sorted(kept, key=lambda number: -counts[number])[:most])
    return Sparse(np.array(kept, np.int64), np.array([counts[number] for number in kept], np.float32))


def joined(rows: Sequence[Sparse]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers and weights of all rows in one piece, and the row that each is of."""
    owners = np.repeat(np.arange(len(rows)), [len(row.numbers) for row in rows])
    if not len(owners):
        return owners, np.empty(0, np.float32), owners
    return np.concatenate([row.numbers for row in rows]), np.concatenate([row.weights for row in rows]), owners


def sums(values: np.ndarray, owners: np.ndarray, count: int) -> np.ndarray:
    """(count,) the sum of the values of each owner, float64."""
    return np.bincount(owners, values, count)


def feature_number(text: str, size: int) -> int:
    """The number below `size` that a feature's name always has."""
    return zlib.crc32(text.encode(errors="replace")) % size
