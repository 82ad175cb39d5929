"""How near memories are to a query: by its tokens, and by the two vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.hits import SearchHit
from storage.search.vectors.space import coverage

DIGITS = 6


class Nearness(NamedTuple):
    """`similarity`: 0 to 1, mean over the query's content tokens of the best cosine among the memory's.

    Without tokens it is the cosine. `cosine`: of the two vectors, of a long text of its best parts; None without one.
    """

    similarity: float
    cosine: float | None


def nearness_of(indexes: IndexSet, query: Query, labels: Sequence[int]) -> Mapping[int, Nearness]:
    """By label how near each document is to the query; 0 of one that has no vector yet."""
    return _nearness(indexes, query, labels, {})


def nearness_of_hits(indexes: IndexSet, query: Query, hits: Sequence[SearchHit]) -> Mapping[int, Nearness]:
    """As `nearness_of`, of what a search for the query has found: it has compared their tokens already."""
    known = {hit.label: hit.coverage for hit in hits if hit.coverage is not None}
    return _nearness(indexes, query, [hit.label for hit in hits], known)


def _nearness(
    indexes: IndexSet, query: Query, labels: Sequence[int], known: Mapping[int, float]
) -> Mapping[int, Nearness]:
    """`known`: by label how much of the query some of them say."""
    if query.vector is None or not labels:
        return dict.fromkeys(labels, Nearness(0.0, None))
    unread = [label for label in labels if label not in known]
    space = indexes.space(query.space)
    cosines = space.document_similarities(query.vector, np.array(labels, np.int64))
    tokens = None
    if query.tokens is not None and unread:
        tokens = space.match_tokens(query.tokens, query.vector, np.array(unread, np.int64))
    covered = dict.fromkeys(labels, math.nan) | dict(known)
    if query.tokens is not None and tokens is not None:
        covered |= dict(zip(unread, coverage(query.tokens, tokens).tolist(), strict=True))
    return {
        label: Nearness(
            _unit(cosine if math.isnan(covered[label]) else covered[label]),
            None if math.isnan(cosine) else _round(cosine),
        )
        for label, cosine in zip(labels, cosines.tolist(), strict=True)
    }


def _unit(value: float) -> float:
    return 0.0 if math.isnan(value) else _round(min(1.0, max(0.0, value)))


def _round(value: float) -> float:
    return round(value, DIGITS)
