"""What a model of its own makes of a text for one view: dense rows, or weighted terms.

A dense model gives one row, a multi-vector model a row a token, a sparse model terms. Two of a kind are compared by
the mean of each asked row's best match, which of single rows is their cosine, or by the cosine of their terms.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from storage.search.vectors.token_vectors import unit

_HEAD = struct.Struct("<BII")
_ROWS, _TERMS = 0, 1
MOST_TERMS = 1_526
"""Of a sparse vector this many terms are kept, the heaviest: 5 % of the usual vocabulary."""


@dataclass(frozen=True, slots=True)
class ModelVector:
    """(n, dim) float32 `rows` of length 1, or (n,) float32 weights of (n,) sorted int64 `terms`.

    The weights together have length 1. Empty where the model made nothing of a text.
    """

    rows: np.ndarray
    terms: np.ndarray | None = None


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


def pack_vector(vector: ModelVector) -> bytes:
    """As it is stored: 2 bytes a number, and 4 a term."""
    numbers = vector.rows.astype("<f2").tobytes()
    if vector.terms is not None:
        return _HEAD.pack(_TERMS, len(vector.terms), 1) + vector.terms.astype("<u4").tobytes() + numbers
    return _HEAD.pack(_ROWS, *vector.rows.shape) + numbers


def unpack_vector(body: bytes) -> ModelVector:
    """What `pack_vector` wrote; a row differs from what was packed by a thousandth of its length at most."""
    kind, count, dim = _HEAD.unpack_from(body)
    at = _HEAD.size
    terms = None
    if kind == _TERMS:
        terms = np.frombuffer(body, "<u4", count, at).astype(np.int64)
        at += 4 * count
    numbers = np.frombuffer(body, "<f2", count * dim, at).astype(np.float32)
    return ModelVector(unit(numbers if kind == _TERMS else numbers.reshape(count, dim)), terms)


def similarities(query: ModelVector, stored: Sequence[ModelVector | None]) -> np.ndarray:
    """(n,) float32 in [-1, 1]: how near each is to the query; NaN without a vector, or of another kind.

    Each depends on its own pair alone.
    """
    return np.array([_similarity(query, one) for one in stored], np.float32)


def _similarity(query: ModelVector, stored: ModelVector | None) -> float:
    if stored is None or not len(query.rows) or not len(stored.rows):
        return np.nan
    if query.terms is not None and stored.terms is not None:
        _, ours, theirs = np.intersect1d(query.terms, stored.terms, assume_unique=True, return_indices=True)
        return float(query.rows[ours] @ stored.rows[theirs])
    if query.terms is not None or stored.terms is not None or query.rows.shape[1] != stored.rows.shape[1]:
        return np.nan
    return float(np.einsum("qd,nd->qn", query.rows, stored.rows).max(axis=1).mean())


def mean_vector(vectors: Sequence[ModelVector], weights: np.ndarray | None = None) -> ModelVector | None:
    """What several have in common; None without any. `weights`: (n,), by default all count alike.

    The mean of single rows or terms at length 1; of rows by token those of the text that is nearest to the mean.
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
    if all(len(one.rows) == 1 for one in some):
        return ModelVector(mean[None].astype(np.float32))
    return some[int(np.argmax(means @ mean))]


def _mean_terms(vectors: Sequence[ModelVector]) -> ModelVector:
    terms = np.concatenate([one.terms for one in vectors if one.terms is not None])
    distinct, places = np.unique(terms, return_inverse=True)
    return terms_vector(distinct, np.bincount(places, np.concatenate([one.rows for one in vectors])))
