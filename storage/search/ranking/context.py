"""One query on its way through the sides, and what comes of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np

from storage.search.query import Query
from storage.search.ranking.weights import Parts
from storage.search.records.filter_cache import AllowList
from storage.search.records.matches import DocumentMatches, Matches
from storage.search.records.records import Records
from storage.search.vectors.space import Space
from storage.search.words.words import Words

WIDER = 4
"""By this much more is looked at when many of the nearest state the same."""
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

    def distinct(self, matches: Matches) -> Matches:
        """One match for each fact: its best, in the name of the record that stands for the fact."""
        if not self.query.distinct or not matches:
            return matches
        labels = self.representatives(np.array([label for label, _ in matches], np.int64)).tolist()
        best: dict[int, float] = {}
        for label, (_, score) in zip(labels, matches, strict=True):
            best.setdefault(label, score)
        return list(best.items())

    def representatives(self, labels: np.ndarray) -> np.ndarray:
        """(n,) allowed labels -> (n,) the records that stand for what they state."""
        if not self.query.distinct or not len(labels):
            return labels
        return self.records.facts.representatives(labels, self.allowed.labels)

    def nearest(self, vector: np.ndarray, k: int, allowed: AllowList | None = None) -> DocumentMatches:
        """The k facts that are nearest to the vector."""
        facts, allowed = self.records.facts, allowed or self.allowed
        size = k if not self.query.distinct else math.ceil(k * facts.copies)
        while True:
            near = self.space.nearest(vector, size, allowed)
            found = self.distinct(near.matches)[:k]
            if len(found) >= k or len(near.matches) < size:
                return DocumentMatches(found, near.fits)
            size *= WIDER


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
