"""What a model of its own makes of a text for one view: dense rows, or weighted terms.

A dense model gives one row, a multi-vector model a row a token, a sparse model terms; of a long text each passage has
its own. Two of a kind are compared by the mean of each asked row's best match, which of single rows is their cosine, or
by the cosine of their terms. Of a long text the passage counts that matches best.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from storage.search.vectors.token_vectors import unit

_HEAD = struct.Struct("<BIII")
_ROWS, _TERMS = 0, 1
MOST_TERMS = 1_526
"""Of a sparse vector this many terms are kept, the heaviest: 5 % of the usual vocabulary."""

MOST_NUMBERS = 4_000_000
"""Of a text this many numbers are kept at most, 8 MB."""


@dataclass(frozen=True, slots=True)
class ModelVector:
    """(n, dim) float32 `rows` of length 1, or (n,) float32 weights of (n,) sorted int64 `terms`.

    The weights together have length 1. Empty where the model made nothing of a text. `starts`: (p,) int64, where each
    passage of a long text begins; None where all is one. Terms are sorted, and weights have length 1, in each passage.
    """

    rows: np.ndarray
    terms: np.ndarray | None = None
    starts: np.ndarray | None = None

    @property
    def passages(self) -> list[ModelVector]:
        """One for each passage; itself where all is one, nothing where the model made nothing."""
        if self.starts is None:
            return [self] if len(self.rows) else []
        ends = [*self.starts[1:].tolist(), len(self.rows)]
        terms = self.terms
        return [
            ModelVector(self.rows[start:end], None if terms is None else terms[start:end])
            for start, end in zip(self.starts.tolist(), ends, strict=True)
        ]


NOTHING = ModelVector(np.empty((0, 0), np.float32))
"""A text that the model cannot encode."""


def rows_vector(rows: np.ndarray) -> ModelVector:
    """Of (n, dim) rows of any length, or of one (dim,) row."""
    return ModelVector(unit(np.atleast_2d(np.asarray(rows, np.float32))))


def terms_vector(terms: np.ndarray, weights: np.ndarray) -> ModelVector:
    """Of (n,) distinct terms and their (n,) weights, of which the heaviest MOST_TERMS are kept."""
    kept = np.argsort(-weights, kind="stable")[:MOST_TERMS]
    kept = kept[np.argsort(terms[kept], kind="stable")]
    return ModelVector(unit(weights[kept].astype(np.float32)), terms[kept].astype(np.int64))


def join_passages(passages: Sequence[ModelVector]) -> ModelVector:
    """Of a text the vectors of its passages as one.

    Those of which the model made nothing are left out, and those behind MOST_NUMBERS.
    """
    sizes = accumulate(one.rows.size for one in passages)
    some = [one for one, size in zip(passages, sizes, strict=True) if len(one.rows) and size <= MOST_NUMBERS]
    if len(some) < 2:
        return some[0] if some else NOTHING
    starts = np.cumsum([0, *(len(one.rows) for one in some[:-1])], dtype=np.int64)
    terms = None if some[0].terms is None else np.concatenate([one.terms for one in some if one.terms is not None])
    return ModelVector(np.concatenate([one.rows for one in some]), terms, starts)


def pack_vector(vector: ModelVector) -> bytes:
    """As it is stored: 2 bytes a number, 4 a term, and 4 a passage of a long text."""
    numbers = vector.rows.astype("<f2").tobytes()
    starts = b"" if vector.starts is None else vector.starts.astype("<u4").tobytes()
    if vector.terms is not None:
        head = _HEAD.pack(_TERMS, len(vector.terms), 1, len(starts) // 4)
        return head + starts + vector.terms.astype("<u4").tobytes() + numbers
    return _HEAD.pack(_ROWS, *vector.rows.shape, len(starts) // 4) + starts + numbers


def unpack_vector(body: bytes) -> ModelVector:
    """What `pack_vector` wrote; a row differs from what was packed by a thousandth of its length at most."""
    kind, count, dim, passages = _HEAD.unpack_from(body)
    at = _HEAD.size
    terms = starts = None
    if passages:
        starts = np.frombuffer(body, "<u4", passages, at).astype(np.int64)
        at += 4 * passages
    if kind == _TERMS:
        terms = np.frombuffer(body, "<u4", count, at).astype(np.int64)
        at += 4 * count
    numbers = np.frombuffer(body, "<f2", count * dim, at).astype(np.float32)
    if kind == _ROWS:
        return ModelVector(unit(numbers.reshape(count, dim)), None, starts)
    if starts is None:
        return ModelVector(unit(numbers), terms)
    lengths = np.sqrt(np.add.reduceat(numbers**2, starts))
    counts = np.diff(starts, append=count)
    return ModelVector(numbers / np.maximum(np.repeat(lengths, counts), 1e-12), terms, starts)


def similarities(query: ModelVector, stored: Sequence[ModelVector | None]) -> np.ndarray:
    """(n,) float32 in [-1, 1]: how near each is to the query; NaN without a vector, or of another kind.

    Each depends on its own pair alone.
    """
    return np.array([_similarity(query, one) for one in stored], np.float32)


def _similarity(query: ModelVector, stored: ModelVector | None) -> float:
    if stored is None or not len(query.rows) or not len(stored.rows):
        return np.nan
    if (query.terms is None) != (stored.terms is None):
        return np.nan
    if query.terms is None and query.rows.shape[1] != stored.rows.shape[1]:
        return np.nan
    if query.starts is None and stored.starts is None:
        return _match(query, stored)
    parts = stored.passages  # of a stored text that is asked with, each passage finds its best
    return float(np.mean([max(_match(one, part) for part in parts) for one in query.passages]))


def _match(query: ModelVector, stored: ModelVector) -> float:
    """Of two of a kind that are one passage each."""
    if query.terms is not None and stored.terms is not None:
        _, ours, theirs = np.intersect1d(query.terms, stored.terms, assume_unique=True, return_indices=True)
        return float(query.rows[ours] @ stored.rows[theirs])
    return float(np.einsum("qd,nd->qn", query.rows, stored.rows).max(axis=1).mean())


def mean_vector(vectors: Sequence[ModelVector], weights: np.ndarray | None = None) -> ModelVector | None:
    """What several have in common; None without any. `weights`: (n,), by default all count alike.

    The mean of terms, or of rows where a passage has one, at length 1; of rows by token those of the text that is
    nearest to the mean.
    """
    known = [place for place, one in enumerate(vectors) if len(one.rows)]
    if not known:
        return None
    some = [vectors[place] for place in known]
    shares = np.ones(len(some)) if weights is None else np.asarray(weights, np.float64)[known]
    if some[0].terms is not None:
        return _mean_terms([one for one in some if one.terms is not None])
    means = unit(np.stack([one.rows.mean(axis=0) for one in some]))
    mean = unit(shares @ means)
    if all(len(one.rows) == (1 if one.starts is None else len(one.starts)) for one in some):
        return ModelVector(mean[None].astype(np.float32))
    return some[int(np.argmax(means @ mean))]


def _mean_terms(vectors: Sequence[ModelVector]) -> ModelVector:
    terms = np.concatenate([one.terms for one in vectors if one.terms is not None])
    distinct, places = np.unique(terms, return_inverse=True)
    return terms_vector(distinct, np.bincount(places, np.concatenate([one.rows for one in vectors])))
