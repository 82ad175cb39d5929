"""What a search gives, and reading it from `documents`.

Only labels that the table gave for the filter get here (`filter_cache`), so that no index can leak a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import duckdb
import numpy as np

from storage.search.records.passages import Passage

TIE_DIGITS = 12
"""Scores that agree to this many digits are tied: sums in another order differ in the last bits."""


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A document that was found.

    `sides`: side -> (rank from 1, raw score: cosine, BM25, weighted mean of token cosines, place of its best parent).
    `parts`: side -> what it adds to the score; their sum is the score. `passage`: of a long text the best one.
    `also`: (kind, id) of other records that state the same, newest first; `times`: how often it was stated.
    `earlier`: (kind, id) of records of which it changes what they say; `disputed_by`: of those that change what it
    says.
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
    also: Sequence[tuple[str, str]] = ()
    times: int = 1
    earlier: Sequence[tuple[str, str]] = ()
    disputed_by: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class SearchResult:
    """`total`: matches before the limit, of all sides' pools. `degraded`: what was missing, as a sentence, or None."""

    hits: list[SearchHit]
    total: int
    degraded: str | None = None


def read_best(
    cursor: duckdb.DuckDBPyConnection, namespace: str, labels: np.ndarray, scores: np.ndarray, limit: int
) -> dict[int, SearchHit]:
    """Of (n,) labels with (n,) scores the `limit` best, and what is tied with the last, by label.

    In place of those that are not there any more the next best are read.
    """
    rounded = np.round(scores, TIE_DIGITS)
    order = np.argsort(-rounded, kind="stable")
    found: dict[int, SearchHit] = {}
    start, missing = 0, limit
    while start < len(order) and missing > 0:
        stop = min(start + missing, len(order))
        while stop < len(order) and rounded[order[stop]] == rounded[order[stop - 1]]:
            stop += 1
        found |= read_hits(cursor, namespace, labels[order[start:stop]].tolist())
        start, missing = stop, limit - len(found)
    return found


def read_hits(cursor: duckdb.DuckDBPyConnection, namespace: str, labels: Sequence[int]) -> dict[int, SearchHit]:
    """The documents with these labels that are the namespace's, without scores.

    By key alone: DuckDB evaluates further conditions on all rows first (11 ms instead of 1 at 100,000).
    """
    if not labels:
        return {}
    rows = cursor.execute(
        "SELECT label, record_id, kind, toolset, session_id, domain, text, created_at, event_id, namespace "
        f"FROM documents WHERE label IN ({', '.join(map(str, labels))})"
    ).fetchall()
    return {row[0]: SearchHit(*row[:-1]) for row in rows if row[-1] == namespace}


def read_hit(cursor: duckdb.DuckDBPyConnection, namespace: str, label: int) -> SearchHit | None:
    """The document with this label, without a score; None where the namespace has none."""
    return read_hits(cursor, namespace, [label]).get(label)


def read_names(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> list[tuple[str, str]]:
    """(kind, record id) of the documents with these labels, in their order."""
    return read_names_of(cursor, [labels])[0]


def read_names_of(cursor: duckdb.DuckDBPyConnection, groups: Sequence[Sequence[int]]) -> list[list[tuple[str, str]]]:
    """(kind, record id) of the documents of each group of labels, in its order, read at once.

    What is not there any more is left out.
    """
    labels = {label for group in groups for label in group}
    if not labels:
        return [[] for _ in groups]
    rows = cursor.execute(
        f"SELECT label, kind, record_id FROM documents WHERE label IN ({', '.join(map(str, labels))})"
    ).fetchall()
    names = {label: (kind, record_id) for label, kind, record_id in rows}
    return [[names[label] for label in group if label in names] for group in groups]


def read_dates(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, tuple[datetime, str]]:
    """label -> (created_at, record id) of those that are documents."""
    if not labels:
        return {}
    rows = cursor.execute(
        "SELECT label, created_at, record_id FROM documents WHERE label IN (SELECT unnest(?::BIGINT[]))", [list(labels)]
    ).fetchall()
    return {label: (created_at, record_id) for label, created_at, record_id in rows}
