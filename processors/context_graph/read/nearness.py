"""How near memories are to a query: by its tokens, and by the two vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from storage.search.index_set import IndexSet
from storage.search.query import Query

DIGITS = 6


class Nearness(NamedTuple):
    """`similarity`: 0 to 1, mean over the query's content tokens of the best cosine among the memory's.

    Without tokens it is the cosine. `cosine`: of the two vectors, of a long text of its best parts; None without one.
    """

    similarity: float
    cosine: float | None


def nearness_of(indexes: IndexSet, query: Query, labels: Sequence[int]) -> Mapping[int, Nearness]:
    """By label how near each document is to the query; 0 of one that has no vector yet."""
    if query.vector is None or not labels:
        return dict.fromkeys(labels, Nearness(0.0, None))
    asked = np.array(labels, np.int64)
    with indexes.searching():
        space = indexes.space(query.space)
        cosines = space.document_similarities(query.vector, asked)
        tokens = None if query.tokens is None else space.match_tokens(query.tokens, query.vector, asked)
    covered = np.full(len(labels), np.nan)
    if query.tokens is not None and tokens is not None:
        content = query.tokens.content if query.tokens.content.any() else np.ones(len(query.tokens.ids), bool)
        covered[tokens.is_read] = tokens.rows[tokens.is_read][:, content].mean(axis=1)
    return {
        label: Nearness(_unit(cosine if math.isnan(cover) else cover), None if math.isnan(cosine) else _round(cosine))
        for label, cosine, cover in zip(labels, cosines.tolist(), covered.tolist(), strict=True)
    }


def _unit(value: float) -> float:
    return 0.0 if math.isnan(value) else _round(min(1.0, max(0.0, value)))


def _round(value: float) -> float:
    return round(value, DIGITS)
