"""relate: the memories that a new one is near to, and the one before it in its session, as edges.

It needs the store: it waits until the memory and its vector are applied. A memory is joined to the nearest that there
are then; those that come later are joined to it. Without a model nothing is near, and only time relates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import duckdb
import numpy as np

from processors.context_graph.kinds import TEXT_EVENTS
from processors.context_graph.read.ends import followed_all
from processors.context_graph.rules.edges import ends_of
from processors.context_graph.rules.memories import TOOLSET
from processors.frame.stage import Stage, StageParts
from processors.memory.read.earlier import nearest_memories
from processors.memory.registry import texts_to_embed
from processors.memory.vector_facts import VECTOR_STAGE
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from storage.statements import execute
from streams.event_types.context_edges import EDGES_FOUND
from streams.events import Event, LoggedEvent
from streams.ids import document_label
from streams.positions import Freshness
from streams.topics import MEMORY

SIMILAR = "similar"
THETA_EDGE = 0.5
"""Texts of one matter have at least this cosine with the default model."""
MOST_SIMILAR = 5
"""A new memory has this many edges of meaning at most: of conversations 1 % stay alone, and a memory has ten."""
TEMPORAL_WEIGHT, TEMPORAL_CONFIDENCE = 0.3, 0.5
"""That one came after the other is sure, that they are of one matter is not: no shortcut goes over such an edge."""
CONNECTED = timedelta(minutes=10)
"""Memories of one connection follow each other, where no session says it, when they are not further apart."""
BATCH_MEMORIES = 16
"""For this many memories the index is read at once."""
DIGITS = 6

# a session is one from its first memory to its last; a connection may be open for days
_BEFORE = """
SELECT record_id, earlier FROM (
    SELECT record_id, created_at, session_id, lag(record_id) OVER place AS earlier,
           lag(created_at) OVER place AS earlier_at
    FROM documents
    WHERE namespace = $namespace AND toolset = $toolset AND (session_id IN (SELECT unnest($sessions::VARCHAR[]))
       OR session_id IS NULL AND connection IN (SELECT unnest($connections::VARCHAR[])) AND created_at >= $since)
    WINDOW place AS (
        PARTITION BY session_id, CASE WHEN session_id IS NULL THEN connection END ORDER BY "offset", label))
WHERE record_id IN (SELECT unnest($ids::VARCHAR[])) AND earlier IS NOT NULL
  AND (session_id IS NOT NULL OR created_at - earlier_at <= $apart)"""


@dataclass(frozen=True, slots=True)
class _Stored:
    """A memory of a batch that is in the store."""

    memory_id: str
    label: int
    session_id: str | None
    connection: str | None
    created_at: Any


class Relate(Stage):
    """A memory -> its edges to those that it is near to, and to the one before it."""

    name = "relate"
    source = MEMORY
    waits_for = frozenset({VECTOR_STAGE})
    needs_store = True
    accepts = TEXT_EVENTS
    batch_size = 64
    linger_s = 2.0  # nobody waits for edges

    _applied: AppliedPositions

    def __init__(self, reader: Reader, indexes: IndexSet, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied

    @classmethod
    def made(cls, parts: StageParts) -> Relate:
        store = parts.needed_store
        return cls(store.reader, store.indexes, store.applied)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        vectors = [] if self._indexes.model is None else [VECTOR_STAGE]
        await self.store_has(Freshness.after(logged.position for logged in events), vectors)
        return await self._reader.run(lambda cursor: self.find(cursor, events))

    def find(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The facts about each event, from what the store holds now."""
        found: list[Sequence[Event]] = []
        for start in range(0, len(events), BATCH_MEMORIES):
            some = events[start : start + BATCH_MEMORIES]
            ids = [[identity for identity, _ in texts_to_embed(logged.event)] for logged in some]
            edges: dict[tuple[str, str], list[dict[str, Any]]] = {}
            for namespace in {logged.event.namespace for logged in some}:
                own = (each for logged, each in zip(some, ids, strict=True) if logged.event.namespace == namespace)
                news = _read(cursor, namespace, [identity for each in own for identity in each])
                for memory_id, edge in (*self._similar(cursor, namespace, news), *_temporal(cursor, namespace, news)):
                    edges.setdefault((namespace, memory_id), []).append(edge)
            found += [
                self._fact(logged, [edge for one in each for edge in edges.get((logged.event.namespace, one), ())])
                for logged, each in zip(some, ids, strict=True)
            ]
            self._indexes.yield_to_callers()
        return found

    def _fact(self, logged: LoggedEvent, edges: Sequence[Mapping[str, Any]]) -> list[Event]:
        return [self.fact(logged, EDGES_FOUND, {"edges": edges})] if edges else []

    def _similar(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, news: Sequence[_Stored]
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        """(memory, edge) of those that have a vector."""
        model = self._indexes.model
        if model is None or not news:
            return
        space = self._indexes.space(model.space)
        held = space.vectors(np.array(sorted(new.label for new in news), np.int64))
        known = [new for new in news if new.label in held]
        texts = [(namespace, held[new.label]) for new in known]
        found = nearest_memories(cursor, self._indexes, space, texts, TOOLSET)
        ended = followed_all(cursor, namespace, {other.record_id for near in found for other in near})
        for new, near in zip(known, found, strict=True):
            others = [other for other in near if other.label != new.label and other.record_id not in ended]
            for other in [other for other in others if (other.cosine or 0.0) >= THETA_EDGE][:MOST_SIMILAR]:
                weight = round(min(1.0, other.cosine or 0.0), DIGITS)
                yield new.memory_id, _edge(new.memory_id, other.record_id, SIMILAR, weight) | {"space": model.space}


def _read(cursor: duckdb.DuckDBPyConnection, namespace: str, memory_ids: Sequence[str]) -> list[_Stored]:
    """Those of these memories that there are: a content that was stored before has made none."""
    labels = [document_label(namespace, one) for one in memory_ids]
    rows = execute(
        cursor,
        "SELECT record_id, label, session_id, connection, created_at FROM documents "
        "WHERE label IN (SELECT unnest(?::BIGINT[])) ORDER BY record_id",
        [labels],
    ).fetchall()
    return [_Stored(*row) for row in rows]


def _temporal(
    cursor: duckdb.DuckDBPyConnection, namespace: str, news: Sequence[_Stored]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """(memory, edge) of those that another one came before, in their session or on their connection."""
    sessions = {new.session_id for new in news if new.session_id is not None}
    connections = {new.connection for new in news if new.session_id is None and new.connection is not None}
    if not sessions and not connections:
        return
    asked = {
        "namespace": namespace,
        "toolset": TOOLSET,
        "sessions": sorted(sessions),
        "connections": sorted(connections),
        "since": min(new.created_at for new in news) - CONNECTED,
        "apart": CONNECTED,
        "ids": [new.memory_id for new in news],
    }
    for memory_id, earlier in cursor.execute(_BEFORE, asked).fetchall():
        yield memory_id, _edge(memory_id, earlier, "temporal", TEMPORAL_WEIGHT) | {"confidence": TEMPORAL_CONFIDENCE}


def _edge(one: str, other: str, kind: str, weight: float) -> dict[str, Any]:
    source_id, target_id = ends_of(one, other, kind)
    return {"source_id": source_id, "target_id": target_id, "kind": kind, "weight": weight}
