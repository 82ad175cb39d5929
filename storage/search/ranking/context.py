"""One query on its way through the sides, and what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np

from storage.search.query import Query
from storage.search.ranking.distinct import nearest_clusters
from storage.search.ranking.pool import WHOLE, Share
from storage.search.ranking.weights import Parts
from storage.search.records.filter_cache import AllowList
from storage.search.records.matches import DocumentMatches, Matches
from storage.search.records.records import Records
from storage.search.vectors.space import Space
from storage.search.words.words import Words

Sides = dict[str, Sequence[tuple[int, float]]]
"""side -> its matches, best first, with raw scores."""


@dataclass(frozen=True, slots=True)
class SearchContext:
    """A query with what it is answered from, and the records that its filter leaves. `space_name`: of the space.

    `share`: of the pool of candidates, where other indexes are searched too.
    """

    cursor: duckdb.DuckDBPyConnection
    query: Query
    allowed: AllowList
    words: Words
    space: Space
    records: Records
    space_name: str = ""
    share: Share = WHOLE

    @property
    def with_excerpts(self) -> bool:
        """Whether an excerpt is a record like others: the query asks for kinds by name."""
        return bool(self.query.filter.kinds)

    def distinct(self, matches: Matches) -> Matches:
        """One match for each cluster, where clusters are asked for."""
        if not self.query.distinct:
            return matches
        return self.records.clusters.distinct(matches, self.allowed.labels, excerpts=self.with_excerpts)

    def representatives(self, labels: np.ndarray) -> np.ndarray:
        """(n,) allowed labels -> (n,) the records that stand for their clusters, where these are asked for."""
        if not self.query.distinct:
            return labels
        return self.records.clusters.representatives(labels, self.allowed.labels, excerpts=self.with_excerpts)

    def nearest(self, vector: np.ndarray, k: int, allowed: AllowList | None = None) -> DocumentMatches:
        """The k clusters, or records, that are nearest to the vector."""
        if not self.query.distinct:
            return self.space.nearest(vector, k, allowed or self.allowed)
        may = allowed or self.allowed
        return nearest_clusters(self.space, self.records.clusters, vector, k, may, excerpts=self.with_excerpts)


@dataclass(frozen=True, slots=True)
class Scored:
    """The candidates: (n,) labels, sorted, with their scores, and what each side adds to these.

    `fits`: document -> the label of its passage that fits best, where token vectors tell. `coverage`: how much of the
    query these say (`storage.search.vectors.space.coverage`).
    """

    labels: np.ndarray
    scores: np.ndarray
    parts: Parts
    sides: Sides
    fits: dict[int, int] = field(default_factory=dict)
    coverage: dict[int, float] = field(default_factory=dict)
