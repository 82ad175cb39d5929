"""The materialiser: reads every topic in order and makes the store follow, one transaction a batch.

    poll → decode (undecodable → dead-letter topic, durable) → one transaction {rows, outcomes, positions} → commit
         → indexes → applied positions advance

On start the positions come from DuckDB, never from a consumer group. A storage error is not handled here: it ends
the process, and a restart recovers (crash-only).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from processors.frame.batch import Reduced, reduce_batch
from processors.frame.batching import Batcher
from storage.applied import AppliedPositions
from storage.search.index_set import IndexSet
from storage.writer import Writer
from streams.clock import Clock
from streams.dlq import DeadLetter, bury
from streams.errors import LogUnavailable, StoreError
from streams.events import Event, LoggedEvent
from streams.failpoints import hit
from streams.log.base import Log, LogReader, Record
from streams.positions import Partition
from streams.topics import DLQ_SUFFIX, INVOCATIONS, MEMORY, TELEMETRY

logger = logging.getLogger(__name__)

MAX_BYTES = 4 * 1024 * 1024
MAINTENANCE_S = 60.0
"""How often a store that always has more to apply folds a large write-ahead log into its file and empties its cache."""
CONSECUTIVE_FAILURES = 50
BY_KEY = frozenset({MEMORY.name, TELEMETRY.name, INVOCATIONS.name})
"""Topics whose records lie on the partition of their key; what is derived lies on that of its source."""
NAMED_SOURCES = 100


@dataclass
class Counters:
    """What the materialiser has done since it started."""

    batches: int = 0
    records: int = 0
    events: int = 0
    duplicates: int = 0
    buried: int = 0


class Mirror(Protocol):
    """A copy of some events beside the store. It is a convenience: a crash may lose or repeat its last lines."""

    types: frozenset[str]
    """The event types that it copies."""

    def write(self, events: Sequence[Event]) -> None: ...

    def has_lines(self) -> bool:
        """Whether anything was copied before."""
        ...


class TooManyFailures(RuntimeError):
    """The code is bad, not the records: stop rather than divert everything."""


class Materialiser:
    """One for each store. `run` until cancelled; everything that touches the store is on one thread."""

    def __init__(
        self,
        log: Log,
        topics: Sequence[str],
        writer: Writer,
        indexes: IndexSet,
        applied: AppliedPositions,
        clock: Clock,
        namespace: str = "default",
        mirror: Mirror | None = None,
    ) -> None:
        """`namespace` is that of records which carry none. `mirror` gets the agents' own telemetry once it is
        applied."""
        self._log, self._topics, self._writer = log, list(topics), writer
        self._indexes, self._applied, self._clock = indexes, applied, clock
        self._namespace = namespace
        self._mirror = mirror
        self.thread = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self.counters = Counters()
        self.written_ms: dict[Partition, int] = {}
        """By partition when the record was written that was applied last."""
        self._stages: dict[tuple[str, Partition], int] = {}
        self._given_up = writer.database.is_given_up
        """Whether the last start ended because too many failed, with nothing applied since: then nothing is
        diverted."""
        self._failures = CONSECUTIVE_FAILURES if self._given_up else 0
        self.misplaced_at: dict[str, float] = {}
        """When a record of a source last lay on another partition than its key's, of the last NAMED_SOURCES of them."""
        self._counts: dict[str, int] = {}
        self._mirrored: dict[Partition, int] = {}
        self._partitions: list[Partition] = []
        self._batcher: Batcher | None = None
        self._maintained_at = clock.monotonic()
        self._is_cache_large = False

    async def run(self) -> None:
        """Apply the log for ever. A log that is away is waited for, also at the start."""
        reader = await self._once_answered(self._begin)
        while True:
            await self._apply_until_ended(reader)
            reader = await self._once_answered(lambda: self._log.reader(self._start()))

    async def _begin(self) -> LogReader:
        """A reader of all topics from the stored positions. Dead letters come first: a rebuild buries none again.

        Raises LogUnavailable; may then be called again.
        """
        loop = asyncio.get_running_loop()
        positions = await loop.run_in_executor(self.thread, self._writer.positions)
        self._stages = await loop.run_in_executor(self.thread, self._writer.stages)
        ends = await self._log.end_offsets(self._topics)
        self._check(positions, ends)
        self._applied.advance(positions, self._stages)
        if self._mirror is not None and not positions and self._mirror.has_lines():
            self._mirrored = ends  # the store was deleted: its replay is no news to the mirror
        letters = {at: positions.get(at, 0) for at in ends if at.topic.endswith(DLQ_SUFFIX)}
        await self._catch_up(letters, ends)
        self._partitions = list(ends)
        self._counts = Counter(at.topic for at in ends if at.topic in BY_KEY)
        return await self._log.reader(self._start())

    async def _apply_until_ended(self, reader: LogReader) -> None:
        """Apply what the reader gives until other partitions are to be read too."""
        loop = asyncio.get_running_loop()
        self._batcher = batcher = Batcher(reader, self._applied, self._clock)
        try:
            while not batcher.is_ended:
                records = await self._next(batcher)
                started = self._clock.monotonic()
                for batch in _slices(records):
                    await self.apply(batch)
                batcher.took_s = self._clock.monotonic() - started
                if not records or self._clock.monotonic() - self._maintained_at >= MAINTENANCE_S:
                    await loop.run_in_executor(self.thread, self._maintain, not records)
                    self._maintained_at = self._clock.monotonic()
                if self._is_cache_large and not self._indexes.is_serving:
                    await loop.run_in_executor(self.thread, self._writer.release_cache)
                    self._is_cache_large = False
        finally:
            await batcher.close()

    def _maintain(self, is_idle: bool) -> None:
        """On the writer's thread: fold a large log into the file, and see what DuckDB keeps in memory."""
        if is_idle or self._writer.has_large_log:
            self._writer.checkpoint()
        self._is_cache_large = self._writer.has_large_cache

    def follow(self, partitions: Iterable[Partition]) -> None:
        """Read these partitions too: topics that were made after the start."""
        new = [at for at in partitions if at not in self._partitions]
        if new and self._batcher is not None:
            self._partitions += new
            self._batcher.end()

    def _start(self) -> dict[Partition, int]:
        return {at: self._applied.next_offset(at) for at in self._partitions}

    async def _once_answered(self, ask: Callable[[], Awaitable[LogReader]]) -> LogReader:
        while True:
            try:
                return await ask()
            except LogUnavailable as error:
                logger.warning("the materialiser waits for the log: %s", error.message)
                await asyncio.sleep(1.0)

    async def _next(self, batcher: Batcher) -> Sequence[Record]:
        """The next records; none while the log is down.

        The node lives on then, because callers' writes go to the spool.
        """
        try:
            return await batcher.batch()
        except LogUnavailable as error:
            logger.warning("the materialiser waits for the log: %s", error.message)
            await asyncio.sleep(1.0)
            return []

    async def _catch_up(self, positions: dict[Partition, int], ends: dict[Partition, int]) -> None:
        """Apply these partitions up to their ends; `positions` is advanced."""
        batcher = Batcher(await self._log.reader(positions), self._applied, self._clock)
        try:
            while any(offset < ends[at] for at, offset in positions.items()):
                for batch in _slices(await self._next(batcher)):
                    await self.apply(batch)
                    for record in batch:
                        positions[record.position.at] = record.offset + 1
        finally:
            await batcher.close()

    def _check(self, positions: dict[Partition, int], ends: dict[Partition, int]) -> None:
        for at, offset in positions.items():
            if at in ends and offset > ends[at]:
                raise StoreError(
                    f"The store has applied {at.topic}/{at.partition} up to {offset}, but that log ends at {ends[at]}: "
                    "they do not belong together. Point at the right log, or move thalweg.duckdb away to start again "
                    "with this one."
                )

    async def apply(self, records: Sequence[Record]) -> Reduced:
        """One batch, one transaction; when this returns it is applied, indexed and visible."""
        loop = asyncio.get_running_loop()
        reduced = await loop.run_in_executor(self.thread, self._reduce, records)
        if reduced.buried:
            reduced.buried = await loop.run_in_executor(self.thread, self._not_yet_buried, reduced)
            if self._given_up and _bugs(reduced) and self._in_a_row(reduced) >= CONSECUTIVE_FAILURES:
                raise TooManyFailures(_sentence(reduced, "still fail in their reducers", "nothing more is diverted"))
            if enough := self._enough(records, reduced):
                return await self.apply(records[:enough])
            if reduced.buried:  # dead letters go to their topics before the transaction
                await self._log.publish([bury(record, letter) for record, letter in reduced.buried], timeout_s=30.0)
                hit("after_bury")
            await loop.run_in_executor(self.thread, self._commit, reduced)
        self._count(records, reduced)
        self.written_ms.update((record.position.at, record.timestamp_ms) for record in records)
        self._applied.advance(reduced.changes.positions, reduced.changes.stages)
        return reduced

    def _reduce(self, records: Sequence[Record]) -> Reduced:
        """On the writer's thread; commits at once unless something must be buried first."""
        reduced = reduce_batch(self._writer, records, self._clock.now(), self._namespace, self._counts)
        marks = reduced.changes.stages
        reduced.changes.stages = {key: offset for key, offset in marks.items() if offset > self._stages.get(key, -1)}
        if not reduced.buried:
            self._commit(reduced)
        return reduced

    def _commit(self, reduced: Reduced) -> None:
        self._writer.commit(reduced.changes)
        self._stages.update(reduced.changes.stages)
        covered = {f"{at.topic}/{at.partition}": offset for at, offset in reduced.changes.positions.items()}
        self._indexes.apply(reduced.indexed.documents, reduced.indexed.vectors, covered)
        if self._indexes.turns is not None:
            self._indexes.turns.defer(reduced.indexed.turns, reduced.indexed.turn_vectors, covered)
        if self._mirror is not None:
            self._mirror.write([logged.event for logged in reduced.applied if self._is_to_mirror(logged, self._mirror)])
        hit("after_index")

    def _is_to_mirror(self, logged: LoggedEvent, mirror: Mirror) -> bool:
        at, offset = logged.position.at, logged.position.offset
        return logged.event.type in mirror.types and offset >= self._mirrored.get(at, 0)

    def _enough(self, records: Sequence[Record], reduced: Reduced) -> int:
        """After how many records too many were diverted, where more follow; 0: take them all."""
        bugs = Counter(letter.position for letter in _bugs(reduced))
        failures = 0 if reduced.events else self._failures
        for number, record in enumerate(records[:-1], 1):
            failures += bugs[record.position]
            if failures >= CONSECUTIVE_FAILURES:
                return number
        return 0

    def _not_yet_buried(self, reduced: Reduced) -> list[tuple[Record, DeadLetter]]:
        """The batch's dead letters that are new: a rebuild repeats none, and counts none as a failure."""
        known = self._writer.find("dead_letters", {(letter.id,): None for _, letter in reduced.buried})
        return [(record, letter) for record, letter in reduced.buried if (letter.id,) not in known]

    def _count(self, records: Sequence[Record], reduced: Reduced) -> None:
        counters = self.counters
        counters.batches += 1
        counters.records += len(records)
        counters.events += reduced.events
        counters.duplicates += reduced.duplicates
        counters.buried += len(reduced.buried)
        for source in reduced.misplaced:
            self.misplaced_at.pop(source, None)
            self.misplaced_at[source] = self._clock.monotonic()
        while len(self.misplaced_at) > NAMED_SOURCES:
            self.misplaced_at.pop(next(iter(self.misplaced_at)))
        self._failures = self._in_a_row(reduced)
        if _bugs(reduced) and self._failures >= CONSECUTIVE_FAILURES:
            self._writer.database.mark_given_up(True)
            raise TooManyFailures(
                _sentence(
                    reduced, f"failed in their reducers, {self._failures} in a row", "stopped before more is diverted"
                )
            )
        if self._given_up and reduced.events:
            self._given_up = False
            self._writer.database.mark_given_up(False)

    def _in_a_row(self, reduced: Reduced) -> int:
        """How many failed without a success between, this batch included."""
        return len(_bugs(reduced)) + (0 if reduced.events else self._failures)


def _sentence(reduced: Reduced, failed: str, then: str) -> str:
    last = _bugs(reduced)[-1]
    return (
        f"Events {failed} (last: {last.error_type}: {last.error_message}); {then} to the dead-letter topic. "
        "The code is bad and not the events: mend it, start again, and `thalweg dlq replay` what was diverted; "
        "the rest is still on the log."
    )


def _bugs(reduced: Reduced) -> list[DeadLetter]:
    """The letters of events that a reducer failed on: the code's fault and not the event's."""
    return [letter for _, letter in reduced.buried if letter.error_type != "Poison"]


def _slices(records: Sequence[Record]) -> list[Sequence[Record]]:
    """Cut the records into slices of about MAX_BYTES, in order.

    A slice ends with the record that brings it to MAX_BYTES or more, as a read of the log does.
    """
    slices: list[list[Record]] = []
    size = MAX_BYTES
    for record in records:
        if size >= MAX_BYTES:
            slices.append([])
            size = 0
        slices[-1].append(record)
        size += len(record.value or b"")
    return slices  # type: ignore[return-value]
