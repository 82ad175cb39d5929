"""What a search gives, and reading it from `documents`. Only labels that the table gave for the filter get here (`allowed`), so that
no index can leak a record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import duckdb
import numpy as np

from storage.search.records.filter import Filter
from storage.search.records.filter_cache import Allowed
from storage.search.records.passages import Passage
from storage.search.vectors.token_vectors import Tokens
from storage.search.words.tantivy_schema import Scores

TIE_DIGITS = 12
"""Sums in another order differ in the last bits: a tie is a tie to so many digits."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A document that was found.

    `sides`: side -> (rank from 1, raw score: cosine, BM25, weighted mean of token cosines, or place of its best parent).
    `parts`: side -> what it adds to the score; their sum is the score. `passage`: of a long text the part that fits best.
    """

    label: int
    record_id: str
    kind: str
    toolset: str
    session_id: str | None
    domain: str | None
    text: str
    created_at: datetime
    event_id: str = ""
    score: float = 0.0
    sides: Mapping[str, tuple[int, float]] = field(default_factory=dict)
    parts: Mapping[str, float] = field(default_factory=dict)
    passage: Passage | None = None


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total`: matches before the limit, of the pools of all sides. `degraded`: what was missing, a sentence, or None."""

    hits: list[Hit]
    total: int
    degraded: str | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """The keyword side: (label, BM25), best first, and document -> the label of what in it fitted best."""

    said: Scores
    fits: dict[int, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """One search on its way through the sides. `fits`: document -> the label of what in it fitted best."""

    cursor: duckdb.DuckDBPyConnection
    text: str
    vector: np.ndarray | None
    tokens: Tokens | None
    filter: Filter
    allowed: Allowed
    size: int
    fits: dict[int, int]


def read_best(asked: Asked, labels: np.ndarray, scores: np.ndarray, limit: int) -> dict[int, Hit]:
    """Of (n,) labels the `limit` best by score, and what is as good as the last of them, by label.

    For those that are not there any more the next best are read.
    """
    rounded = np.round(scores, TIE_DIGITS)
    order = np.argsort(-rounded, kind="stable")
    found: dict[int, Hit] = {}
    start, wanted = 0, limit
    while start < len(order) and wanted > 0:
        stop = min(start + wanted, len(order))
        while stop < len(order) and rounded[order[stop]] == rounded[order[stop - 1]]:
            stop += 1
        found |= _read_hits(asked, labels[order[start:stop]].tolist())
        start, wanted = stop, limit - len(found)
    return found


def _read_hits(asked: Asked, labels: Sequence[int]) -> dict[int, Hit]:
    """By key alone: DuckDB evaluates further conditions on all rows first (11 ms instead of 1 at 100,000)."""
    rows = asked.cursor.execute(
        "SELECT label, record_id, kind, toolset, session_id, domain, text, created_at, event_id, namespace FROM documents "
        f"WHERE label IN ({', '.join(map(str, labels))})"
    ).fetchall()
    return {row[0]: Hit(*row[:-1]) for row in rows if row[-1] == asked.filter.namespace}


def read_dates(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, tuple[datetime, str]]:
    """label -> (created_at, record id) of those that are documents."""
    if not labels:
        return {}
    rows = cursor.execute(
        "SELECT label, created_at, record_id FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [list(labels)]
    ).fetchall()
    return {label: (created_at, record_id) for label, created_at, record_id in rows}
