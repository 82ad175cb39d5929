"""One query on its way through the sides, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np

from storage.search.query import Query
from storage.search.ranking.weights import Parts
from storage.search.records.filter_cache import AllowList
from storage.search.records.records import Records
from storage.search.vectors.space import Space
from storage.search.words.words import Words

Sides = dict[str, Sequence[tuple[int, float]]]
"""side -> its matches, best first, with raw scores."""


@dataclass(frozen=True, slots=True)
class SearchContext:
    """A query with what it is answered from, and the records that its filter leaves."""

    cursor: duckdb.DuckDBPyConnection
    query: Query
    allowed: AllowList
    words: Words
    space: Space
    records: Records


@dataclass(frozen=True, slots=True)
class Scored:
    """The candidates: (n,) labels, sorted, with their scores, and what each side adds to these.

    `fits`: document -> the label of its passage that fits best, where token vectors tell.
    """

    labels: np.ndarray
    scores: np.ndarray
    parts: Parts
    sides: Sides
    fits: dict[int, int] = field(default_factory=dict)
