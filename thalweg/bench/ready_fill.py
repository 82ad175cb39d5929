"""Memories whose vectors are made already, put on a log before a node reads it.

Beside each request lie the facts that the stages would find: its vector, and edges of meaning to the memories that
share half of its text. The stages are marked as done, so that a node only applies, and no model reads each text. What
the memories are made of is in `search_store`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from processors.embedding.model import Embedder
from processors.frame.stage import stage_types
from processors.memory.registry import texts_to_embed
from processors.memory.vector_facts import embedded_by, encode_vector
from streams.clock import SystemClock
from streams.codec import encode, encode_batch
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.memory import EMBEDDED
from streams.event_types.stages import PROGRESS
from streams.events import Event
from streams.ids import derived_id, uuid7
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Position
from streams.progress import mark
from streams.topics import DERIVED, MEMORY, with_partitions
from thalweg.bench.search_store import NAMESPACE, READ, memories
from thalweg.process.stage_apps import GROUP

PART = 100
"""Memories whose facts are one record."""
MOST_EDGES = 5
"""Of a memory to earlier ones, as the stage `relate` draws them at most."""
PUBLISH_S = 60.0
SOURCE = "thalweg:bench"


async def publish_ready(
    log: SqliteLog, partitions: int, request: Callable[[str], Event], count: int, embedder: Embedder
) -> None:
    """Put `count` requests and what follows from them on a log that nobody reads yet. `request`: of a text."""
    await log.start()
    try:
        await log.create_topics(with_partitions(partitions))
        stored: list[tuple[str, np.ndarray]] = []
        positions: list[Position] = []
        for entries, vectors, tokens in memories(count, embedder):
            events = [request(text) for text in entries]
            positions = await log.publish([encode(MEMORY.name, event) for event in events], timeout_s=PUBLISH_S)
            stored += [(_record_id(event), vector) for event, vector in zip(events, vectors, strict=True)]
            first = len(stored) - len(events)
            facts = [_embedded(event, vectors[at], tokens[at], embedder) for at, event in enumerate(events)]
            edges = [_joined(event, stored, first + at, embedder) for at, event in enumerate(events)]
            await log.publish([*_records(facts), *_records(edges)], timeout_s=PUBLISH_S)
        last = positions[-1]
        await log.publish(_marks(Position(last.topic, last.partition, last.offset + 1)), timeout_s=PUBLISH_S)
        await log.commit(GROUP, await log.end_offsets([MEMORY.name, DERIVED.name]))
    finally:
        await log.stop()


def _record_id(event: Event) -> str:
    [(record_id, _)] = texts_to_embed(event)
    return record_id


def _embedded(event: Event, vector: np.ndarray, tokens: str | None, embedder: Embedder) -> Event:
    item = {"record_id": _record_id(event), "vector": encode_vector(vector), **({"tokens": tokens} if tokens else {})}
    return _fact(event, EMBEDDED, {**embedded_by(embedder.info), "vectors": [item]})


def _joined(event: Event, stored: Sequence[tuple[str, np.ndarray]], number: int, embedder: Embedder) -> Event:
    """Its edges to the last memories that begin as it does."""
    memory_id, vector = stored[number]
    others = [stored[other] for other in range(number - READ, -1, -READ)[:MOST_EDGES]]
    edges = [
        {
            "source_id": memory_id,
            "target_id": other_id,
            "kind": "similar",
            "weight": round(min(1.0, max(0.0, float(vector @ other))), 6),
            "space": embedder.info.space,
        }
        for other_id, other in others
    ]
    return _fact(event, EDGES_FOUND, {"edges": edges})


def _fact(event: Event, event_type: str, data: Mapping[str, Any]) -> Event:
    return Event(derived_id(event.key, event_type), SOURCE, event_type, NAMESPACE, event.time, data)


def _records(facts: Sequence[Event]) -> list[Outgoing]:
    """The facts as records of PART each."""
    parts = [facts[start : start + PART] for start in range(0, len(facts), PART)]
    return [
        encode_batch(DERIVED.name, part[0].changed(id=derived_id(part[0].id, part[-1].id), data={}), part)
        for part in parts
    ]


def _marks(reached: Position) -> list[Outgoing]:
    """That every stage which reads requests has processed them up to here, and what it follows likewise."""
    now = SystemClock().now()
    return [
        encode(
            DERIVED.name,
            Event(str(uuid7()), SOURCE, PROGRESS, "thalweg", now, {}, extensions=mark(kind.name, [reached])),
            partition=reached.partition,
        )
        for kind in stage_types()
    ]
