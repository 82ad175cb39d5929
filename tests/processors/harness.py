"""A store in memory and a log in memory: what the tests of reducers and batches run on. Clock and ids are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import duckdb

from processors.frame.batch import Reduced, reduce_batch
from processors.frame.stage import StageRunner
from storage.database import Database
from storage.writer import Writer
from streams.codec import encode, encode_batch
from streams.dlq import bury
from streams.events import Event, wire_type
from streams.log.base import Outgoing, Record
from streams.positions import Partition
from streams.topics import MEMORY, TELEMETRY
from tests.schema import NOW, fresh_database, tables


class Store:
    """A real DuckDB with the real writer; `apply` is what the materialiser does, without a loop and indexes."""

    def __init__(self, database: Database | None = None) -> None:
        fresh = fresh_database() if database is None else None
        self.database = fresh or database
        self.writer = Writer(self.database, tables(), fresh and fresh.statements)
        self.offsets: dict[tuple[str, int], int] = {}

    def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        """Where the log ends."""
        return {Partition(*at): offset for at, offset in self.offsets.items() if at[0] in topics}

    def record(self, outgoing: Outgoing, partition: int = 0) -> Record:
        """The record as the log would give it back, at the next offset."""
        at = outgoing.topic, partition
        offset = self.offsets.get(at, 0)
        self.offsets[at] = offset + 1
        return Record(
            outgoing.topic, partition, offset, 1_767_607_200_000, outgoing.key, outgoing.value, outgoing.headers
        )

    def apply(self, *records: Record) -> Reduced:
        reduced = reduce_batch(self.writer, records, NOW)
        self.writer.commit(reduced.changes)
        letters = [self.record(bury(record, letter)) for record, letter in reduced.buried]
        if letters:
            self.apply(*letters)
        return reduced

    def publish(self, *events: Event, topic: str = MEMORY.name) -> Reduced:
        return self.apply(*(self.record(encode(topic, event)) for event in events))

    def sql(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        cursor: duckdb.DuckDBPyConnection = self.database.cursor()
        try:
            return cursor.execute(query, list(parameters)).fetchall()
        finally:
            cursor.close()


async def run_stage(runner: StageRunner, records: Sequence[Record]) -> None:
    """What a stage's agent does with a batch."""
    await runner.publish(records, await runner.derive(records))


def event(
    short_type: str, data: dict[str, Any], *, id: str = "e1", time: datetime = NOW, namespace: str = "default"
) -> Event:
    return Event(id, "test", wire_type(short_type), namespace, time, data)


def opened(session_id: str, **changes: Any) -> Event:
    identity = changes.pop("id", f"open-{session_id}")
    time = changes.pop("time", NOW)
    return event("talos.session.opened", {"session_id": session_id, "goal": "learn", **changes}, id=identity, time=time)


def batch_of(events: Sequence[Event], topic: str = TELEMETRY.name) -> Outgoing:
    envelope = Event(f"batch-{events[0].id}", events[0].source, events[0].type, events[0].namespace, events[0].time, {})
    return encode_batch(topic, envelope, events)
