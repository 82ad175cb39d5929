"""What a dream reads to make vectors of surroundings, and what a search reads of repeated questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from processors.context_graph.rules.memories import TOOLSET, query_vector_id
from processors.context_graph.rules.surroundings import REPEATED_QUESTIONS, surroundings_text
from storage.search.query import Query
from storage.statements import execute

if TYPE_CHECKING:
    from datetime import datetime

    import duckdb

    from storage.search.index_set import IndexSet

WIDE_POOL = 400
"""Candidates of each side for a question that was asked again and again: some of its answers are not among fewer."""
MAX_CHARS = 2_000
"""Of each text: more than fits into the window of a model."""
_LIVING = f"""
FROM documents d WHERE d.namespace = $1 AND d.toolset = '{TOOLSET}'
  AND NOT EXISTS (FROM context_ends e WHERE e.namespace = $1 AND e.memory_id = d.record_id)"""
_BARE = f"""
SELECT d.record_id, d.label {_LIVING} AND d.created_at <= $2
  AND NOT EXISTS (FROM context_surroundings s WHERE s.namespace = $1 AND s.memory_id = d.record_id AND s.space = $3)
ORDER BY d.created_at DESC, d.label LIMIT $4"""
_TEXTS = f"SELECT d.label, left(d.text, {MAX_CHARS}) {_LIVING} AND d.label IN (SELECT unnest($2::BIGINT[]))"


class BareMemory(NamedTuple):
    """A living memory that has no vector of its surroundings yet."""

    memory_id: str
    label: int


class Surroundings(NamedTuple):
    """The text of a memory's surroundings. `vector`: its own, where it stands alone; then nothing is encoded."""

    memory_id: str
    text: str
    vector: np.ndarray | None


def read_bare(
    cursor: duckdb.DuckDBPyConnection, namespace: str, as_of: datetime, space: str, most: int
) -> list[BareMemory]:
    """Memories stored until then without a vector of their surroundings in this space, newest first."""
    return [BareMemory(*row) for row in execute(cursor, _BARE, [namespace, as_of, space, most]).fetchall()]


def read_surroundings(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, namespace: str, memories: Sequence[BareMemory]
) -> list[Surroundings]:
    """What the surroundings of these are made of; those that have ended meanwhile are left out.

    Of what stands beside them memories count that live.
    """
    indexes.records.follow_relations(cursor)  # what was merged stands where the first of it stood
    beside = {one.label: indexes.records.timelines.beside(one.label) for one in memories}
    near = {other for sides in beside.values() for side in sides for other in side}
    texts = dict(execute(cursor, _TEXTS, [namespace, sorted(near | set(beside))]).fetchall())
    own = {} if (live := indexes.spaces.live) is None else live.vectors(np.array(sorted(beside), np.int64))
    found = []
    for one in memories:
        if one.label in texts:
            earlier, later = ([texts[other] for other in side if other in texts] for side in beside[one.label])
            is_alone = not earlier and not later
            text = surroundings_text(texts[one.label], earlier, later)
            found.append(Surroundings(one.memory_id, text, own.get(one.label) if is_alone else None))
    return found


def read_repeated(cursor: duckdb.DuckDBPyConnection, namespace: str) -> set[str]:
    """The ids of the queries that dreams found asked again and again."""
    query = f"SELECT query_vector_id FROM {REPEATED_QUESTIONS} WHERE namespace = ?"
    return {query_id for (query_id,) in execute(cursor, query, [namespace]).fetchall()}


def is_repeated(
    cursor: duckdb.DuckDBPyConnection, namespace: str, text: str, may_hold: Callable[[str, tuple[str, ...]], bool]
) -> bool:
    """Whether a dream found that this question had been asked again and again.

    The store is not asked where it surely says no (`Services.may_hold`).
    """
    query_id = query_vector_id(namespace, text)
    if not may_hold(REPEATED_QUESTIONS, (namespace, query_id)):
        return False
    query = f"SELECT 1 FROM {REPEATED_QUESTIONS} WHERE namespace = ? AND query_vector_id = ?"
    return execute(cursor, query, [namespace, query_id]).fetchone() is not None


def widened(query: Query) -> Query:
    """A question that was asked again and again, for more candidates of each side."""
    return replace(query, pool=max(query.pool_size, WIDE_POOL))
