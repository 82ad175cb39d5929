"""Batching: records that wake every waiting caller are applied at once, others linger a little.

A transaction costs several milliseconds whatever it holds. So a batch ends when applying it would wake all callers.
When it would wake some, it waits for what the others need, twice as long as the last batch took and once for each of
them: together they are served by one transaction (docs/adr/0006). When no caller waits, it ends after LINGER_S, and
what several writes and stages left behind is one transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from storage.applied import AppliedPositions, Coverage
from streams.clock import Clock
from streams.errors import LogUnavailable, Poison
from streams.log.base import LogReader, Record
from streams.positions import Partition
from streams.progress import read_progress

MAX_RECORDS = 2000
FULL_RECORDS = 256
FULL_BYTES = 1024 * 1024
LINGER_S = 0.5
WAIT_FOR_CALLERS = 2.0
"""A batch waits for other callers this many times as long as the last one took, at most MAX_WAIT_FOR_CALLERS_S."""
MAX_WAIT_FOR_CALLERS_S = 0.05
IDLE_S = 60.0


@dataclass
class _Batch:
    """Records that were read, and how far applying them would bring the store."""

    records: list[Record] = field(default_factory=list)
    size: int = 0
    since: float = 0.0
    would_wake_since: float | None = None
    positions: dict[Partition, int] = field(default_factory=dict)
    stages: dict[tuple[str, Partition], int] = field(default_factory=dict)

    def add(self, records: Sequence[Record]) -> None:
        self.records.extend(records)
        for record in records:
            self.size += len(record.value or b"")
            self.positions[record.position.at] = record.offset + 1
            try:
                progress = read_progress(record)
            except Poison:
                continue  # the batch buries it
            for source in progress.sources if progress else ():
                key = (progress.stage, source.at)  # type: ignore[union-attr]
                self.stages[key] = max(source.offset, self.stages.get(key, 0))

    @property
    def is_full(self) -> bool:
        return len(self.records) >= FULL_RECORDS or self.size >= FULL_BYTES


class Batcher:
    """Cuts what a log reader gives into batches; the next records are read while the last are applied."""

    def __init__(self, reader: LogReader, applied: AppliedPositions, clock: Clock) -> None:
        self._reader, self._applied, self._clock = reader, applied, clock
        self.took_s = 0.0
        """How long the last batch took to be applied."""
        self._reading: asyncio.Task[Sequence[Record]] | None = None
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def is_ended(self) -> bool:
        """Whether `end` was called: no further batch comes."""
        return self._ended.done()

    def end(self) -> None:
        """End the batch that lingers now; records that were read and are in no batch are read again."""
        if not self._ended.done():
            self._ended.set_result(None)

    async def batch(self) -> Sequence[Record]:
        """The next records, each partition in order; none after IDLE_S without any. Raises LogUnavailable."""
        pending = _Batch()
        while not pending.is_full and not self.is_ended:
            left = self._left(pending)
            if left is not None and left <= 0:
                break
            try:
                records = await self._next(left)
            except LogUnavailable:
                if pending.records:
                    break  # what was read is in hand only here: when the log goes down now, it must not be lost with it
                raise
            if records is None:
                continue  # a caller began to wait, or time is up
            if not records and not pending.records:
                return []
            if not pending.records:
                pending.since = self._clock.monotonic()
            pending.add(records)
        if pending.is_full and not self.is_ended:
            self._read()  # behind a backlog: while this batch is applied
        return pending.records

    def _left(self, pending: _Batch) -> float | None:
        """Seconds until the batch ends by itself; None while there is nothing in it."""
        if not pending.records:
            return None
        now = self._clock.monotonic()
        awaited = self._applied.coverage(pending.positions, pending.stages)
        if awaited is Coverage.NONE:
            return pending.since + LINGER_S - now
        if awaited is Coverage.ALL:
            return 0.0
        if pending.would_wake_since is None:
            pending.would_wake_since = now
        left = pending.would_wake_since + min(WAIT_FOR_CALLERS * self.took_s, MAX_WAIT_FOR_CALLERS_S) - now
        if left <= 0:
            self._applied.end_grace()
        return left

    async def _next(self, timeout_s: float | None) -> Sequence[Record] | None:
        """The records that were read. None when a caller began to wait first, or time is up: the reading goes on."""
        reading = self._read()
        waited: set[asyncio.Future[Any]] = {reading, self._applied.urgent_wait(), self._ended}
        await asyncio.wait(waited, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            return None
        self._reading = None
        return reading.result()

    def _read(self) -> asyncio.Task[Sequence[Record]]:
        """The reading that is under way, begun if there is none."""
        if self._reading is None:
            self._reading = asyncio.ensure_future(self._reader.read(timeout_s=IDLE_S, max_records=MAX_RECORDS))
        return self._reading

    async def close(self) -> None:
        """Give the reader back."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)
        await self._reader.close()
