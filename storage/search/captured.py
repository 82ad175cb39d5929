"""Turns of captured sessions are searched as memories are, in tables and indexes of their own.

The schema `captured` has the turns under the names that a search reads (`storage/migrations/0037_turns.sql`). So no
turn counts among the words, the neighbours or the nearest of a memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import duckdb

from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.ranking.fusion import ordered
from storage.search.records.clusters import cluster_of
from storage.search.records.hits import SearchHit, SearchResult
from storage.search.records.label_map import ABSENT
from streams.ids import document_label

CAPTURED, MEMORIES = "captured", "main"
TOOLSET = "telemetry"
"""What the schema says of each turn."""
_SAID = ("session_id", "role", "source", "event_id")


def captured_cursor(cursor: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """A new cursor that reads turns for good."""
    return cursor.execute(f"SET schema = '{CAPTURED}'")


@contextmanager
def reading(cursor: duckdb.DuckDBPyConnection, schema: str) -> Iterator[None]:
    """Read turns (`CAPTURED`) or memories (`MEMORIES`) while the block runs, then what was read before."""
    row = cursor.execute("SELECT current_schema()").fetchone()
    assert row is not None
    cursor.execute(f"SET schema = '{schema}'")
    try:
        yield
    finally:
        cursor.execute(f"SET schema = '{row[0]}'")


def turns_asked(indexes: IndexSet, query: Query) -> IndexSet | None:
    """The indexes of the turns, where the query asks for them and its namespace has not opted out."""
    return indexes.searched_turns(query.filter.namespace) if query.with_turns else None


def joined(memories: SearchResult, turns: SearchResult, query: Query) -> SearchResult:
    """The best of both. A turn that says the same as a memory is one of the others that state it."""
    hits = {hit.label: hit for hit in memories.hits}
    total = memories.total + turns.total
    stated = {_cluster(query, hit): hit.label for hit in memories.hits} if query.distinct else {}
    stated.pop(ABSENT, None)  # what has no words states nothing
    for turn in turns.hits:
        if (same := stated.get(_cluster(query, turn))) is None:
            hits[turn.label] = turn
            continue
        known, total = hits[same], total - 1
        others = [*known.also, (turn.kind, turn.record_id)]
        hits[same] = replace(known, also=others, times=known.times + turn.times)
    scores = {label: hit.score for label, hit in hits.items()}
    best = ordered(scores, {label: (hit.created_at, hit.record_id) for label, hit in hits.items()})
    found = [hits[label] for label in best[: query.limit]]
    return SearchResult(found, total, memories.degraded or turns.degraded)


def is_turn(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> bool:
    """Whether a turn of the namespace has this id."""
    label = document_label(namespace, record_id)
    return cursor.execute("SELECT 1 FROM turns WHERE label = ?", [label]).fetchone() is not None


def read_turns(cursor: duckdb.DuckDBPyConnection, labels: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By label, of those that are turns: `session_id`, `role` (`user`, `assistant`), `source`, `event_id`.

    The source is the agent (`claude-code`); the event is a row of `session_events`, the place in the session.
    """
    if not labels:
        return {}
    rows = cursor.execute(
        f"SELECT label, {', '.join(_SAID)} FROM turns WHERE label IN (SELECT unnest(?::BIGINT[]))", [list(labels)]
    ).fetchall()
    named = {label: dict(zip(_SAID, values, strict=True)) for label, *values in rows}
    return {label: {name: value for name, value in row.items() if value is not None} for label, row in named.items()}


def turns_among(hits: Iterable[SearchHit]) -> list[int]:
    """The labels of those hits that are turns."""
    return [hit.label for hit in hits if hit.toolset == TOOLSET]


def _cluster(query: Query, hit: SearchHit) -> int:
    return cluster_of(query.filter.namespace, hit.text)
