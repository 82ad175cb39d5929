"""The limit of every write: appends of the same events to the same kind of log, and nothing else."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from streams.clock import SystemClock
from streams.codec import encode
from streams.events import Event, wire_type
from streams.ids import uuid7
from streams.log import open_log
from streams.log.base import Outgoing
from streams.topics import MEMORY, Topic

APPENDS = Topic("thalweg.bench.v1", "events of `thalweg bench`, read by nobody", partitions=1)


def memory_record(text: str) -> Outgoing:
    """The record that `journal_write` publishes for this text."""
    data = {"content": text, "category": "observation", "request_id": str(uuid7())}
    return encode(
        MEMORY.name,
        Event(str(uuid7()), "thalweg:bench", wire_type("talos.journal.written"), "bench", SystemClock().now(), data),
    )


def appends_ms(broker: str, records: Sequence[Outgoing], callers: int) -> tuple[list[float], float]:
    """Milliseconds of each append by `callers` at once, one record at a time; and seconds of them all."""
    return asyncio.run(_appends(broker, records, callers))


async def _appends(broker: str, records: Sequence[Outgoing], callers: int) -> tuple[list[float], float]:
    log = open_log(broker)
    await log.start()
    durations: list[float] = []
    try:
        await log.create_topics([APPENDS])
        waiting = iter([Outgoing(APPENDS.name, record.key, record.value, record.headers) for record in records])

        async def work() -> None:
            for record in waiting:
                started = time.perf_counter()
                await log.publish([record], timeout_s=30.0)
                durations.append((time.perf_counter() - started) * 1000)

        begun = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(callers)))
        return durations, time.perf_counter() - begun
    finally:
        await log.stop()
