"""The embedded log: one WAL-mode SQLite file, so that a node needs nothing else.

One writer thread commits all waiting writes as one transaction (`synchronous=FULL`: answered means synced).
Offsets are taken inside that transaction, so another process (an import beside a running node) may append too; its
records are noticed within POLL_S. Reads never wait for writes. The newest records of this process are read from memory:
each step of a query releases the interpreter, and the event loop then waits behind every other thread to get it back.
"""

from __future__ import annotations

import asyncio
import functools
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path

from streams.clock import now_ms
from streams.errors import LogUnavailable, SettingsError
from streams.files import make_directory
from streams.log import sqlite_tables
from streams.log.base import Log, LogReader, Outgoing, Record
from streams.log.sqlite_tables import SCHEMA, add_topic, append, read_ends
from streams.log.tail_cache import TailCache
from streams.partitioning import partition_for
from streams.positions import Partition, Position
from streams.topics import Topic

POLL_S = 0.05


@dataclass(frozen=True, slots=True)
class _Write:
    """A write for the writer's thread: what it does inside the transaction, and the future of its result."""

    run: Callable[[sqlite3.Connection], object]
    done: Future[object]


class SqliteLog(Log):
    """The log in one file. Several may be open on the same file, in this process or others."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._partitions: dict[Partition, int] = {}
        self._counts: dict[str, int] = {}
        self._ends: dict[Partition, int] = {}
        self._subscribers: list[asyncio.Event] = []
        self._writer: threading.Thread | None = None
        self._reader: sqlite3.Connection | None = None
        self._tail = TailCache()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def start(self) -> None:
        if self._writer is not None:
            return
        try:
            make_directory(Path(self.path).parent)
            connection = self._connect()
            connection.executescript(SCHEMA)
            self._reader = self._connect()
        except (sqlite3.Error, OSError) as error:
            raise LogUnavailable(
                f"The log file {self.path} cannot be opened: {str(error).rstrip('.')}. "
                "Restore it, or choose another with THALWEG_BROKER or THALWEG_HOME."
            ) from error
        self._loop = asyncio.get_running_loop()
        self._load_partitions()
        self._ends = self._read_ends()
        self._writer = threading.Thread(target=self._write_forever, args=(connection,), name="log-writer", daemon=True)
        self._writer.start()

    async def stop(self) -> None:
        if self._writer is None:
            return
        self._queue.put(None)
        await asyncio.to_thread(self._writer.join)
        self._writer = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10.0)
        connection.executescript("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA mmap_size=268435456;")
        return connection

    # --- writing

    def _write_forever(self, connection: sqlite3.Connection) -> None:
        others = _ForeignAppends(connection)
        while True:
            if others.are_due and (ends := others.ends()):
                self._announce(ends, [])
            try:
                write = self._queue.get(timeout=POLL_S)
            except queue.Empty:
                continue
            writes: list[_Write] = []
            while write is not None:
                writes.append(write)
                if self._queue.empty() or len(writes) >= 1000:
                    break
                write = self._queue.get()
            if writes:
                self._commit(connection, writes)
            if write is None:
                connection.close()
                return

    def _commit(self, connection: sqlite3.Connection, writes: Sequence[_Write]) -> None:
        """Commit the writes in one transaction; when it fails, all of them fail. Cancelled writes are left out."""
        awaited: list[_Write] | None = None
        results: list[object] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            awaited = _uncancelled(writes)
            results = [write.run(connection) for write in awaited]
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = (
                LogUnavailable(f"The log file cannot be written: {error}.")
                if isinstance(error, sqlite3.Error)
                else error
            )
            for write in _uncancelled(writes) if awaited is None else awaited:
                write.done.set_exception(failure)
            return
        appended: list[Record] = [record for result in results if isinstance(result, list) for record in result]
        if appended:
            self._announce(
                {Partition(record.topic, record.partition): record.offset + 1 for record in appended}, appended
            )
        for write, result in zip(awaited, results, strict=True):
            write.done.set_result(result)

    def _announce(self, ends: Mapping[Partition, int], appended: Sequence[Record]) -> None:
        """Tell the event loop what is on the log now."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notify, ends, appended)

    async def _submit(self, run: Callable[[sqlite3.Connection], object], timeout_s: float = 10.0) -> object:
        if self._writer is None:
            raise LogUnavailable("The log is not open.")
        done: Future[object] = Future()
        self._queue.put(_Write(run, done))
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.wrap_future(done)
        except TimeoutError:
            raise LogUnavailable(f"The log did not acknowledge within {timeout_s:g} s.") from None

    async def create_topics(self, topics: Iterable[Topic]) -> list[str]:
        created = []
        for topic in topics:
            existing = self.partition_count(topic.name)
            if existing not in (0, topic.partitions):
                raise SettingsError(
                    f"The topic {topic.name} has {existing} partitions, not {topic.partitions}; "
                    f"the number is chosen once. Set `partitions = {existing}` or use another THALWEG_HOME."
                )
            if existing == 0:
                await self._submit(functools.partial(add_topic, topic=topic))
                created.append(topic.name)
                self._load_partitions()
        return created

    def partition_count(self, topic: str) -> int:
        """The number of partitions of the topic; 0 when it does not exist."""
        if topic not in self._counts:
            self._load_partitions()
        return self._counts.get(topic, 0)

    def _load_partitions(self) -> None:
        if self._reader is None:
            raise LogUnavailable("The log is not open.")
        rows = self._reader.execute("SELECT id, topic, partition FROM partitions").fetchall()
        self._partitions = {Partition(topic, number): place for place, topic, number in rows}
        counts: dict[str, int] = {}
        for at in self._partitions:
            counts[at.topic] = counts.get(at.topic, 0) + 1
        self._counts = counts

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        self.check(records)
        placed = [(self._place(record), record) for record in records]
        timestamp_ms = now_ms()
        appended = await self._submit(lambda connection: append(connection, placed, timestamp_ms), timeout_s)
        assert isinstance(appended, list)
        return [record.position for record in appended]

    def _place(self, record: Outgoing) -> Partition:
        count = self.partition_count(record.topic)
        if count == 0:
            raise SettingsError(f"The topic {record.topic} does not exist; `thalweg topics create` makes the topics.")
        partition = record.partition if record.partition is not None else partition_for(record.key or b"", count)
        if not 0 <= partition < count:
            raise SettingsError(f"The topic {record.topic} has no partition {partition}.")
        return Partition(record.topic, partition)

    # --- reading

    def _read_ends(self) -> dict[Partition, int]:
        if self._reader is None:
            raise LogUnavailable("The log is not open.")
        return read_ends(self._reader)

    def _notify(self, ends: Mapping[Partition, int], appended: Sequence[Record]) -> None:
        """Store new ends, and wake the readers when a partition has grown."""
        if self._subscribers:  # without readers, as in an import, nothing is cached
            self._tail.add(appended)
        news = [(at, offset) for at, offset in ends.items() if offset > self._ends.get(at, 0)]
        self._ends.update(news)
        if news:
            for changed in self._subscribers:
                changed.set()

    def end(self, at: Partition) -> int:
        """The next offset to be written; at most POLL_S late for what other processes append."""
        return self._ends.get(at, 0)

    def subscribe(self) -> asyncio.Event:
        """An event that is set at every append; end it with `unsubscribe`."""
        changed = asyncio.Event()
        self._subscribers.append(changed)
        return changed

    def unsubscribe(self, changed: asyncio.Event) -> None:
        if changed in self._subscribers:
            self._subscribers.remove(changed)

    def fetch(self, at: Partition, offset: int, limit: int) -> list[Record]:
        """Up to `limit` records (and about 4 MiB) of a partition from an offset, in order."""
        if newest := self._tail.since(at, offset, limit):
            return newest
        if self._reader is None:
            return []
        if at not in self._partitions:  # a topic that another process has made since
            self._load_partitions()
        partition_id = self._partitions.get(at)
        return [] if partition_id is None else sqlite_tables.fetch(self._reader, at, partition_id, offset, limit)

    async def reader(self, start: Mapping[Partition, int]) -> LogReader:
        return SqliteLogReader(self, dict(start))

    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        wanted = set(topics)
        return {at: offset for at, offset in self._read_ends().items() if at.topic in wanted}

    async def first_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        return dict.fromkeys(await self.end_offsets(topics), 0)

    async def committed(self, group: str, topics: Iterable[str]) -> dict[Partition, int]:
        if self._reader is None:
            raise LogUnavailable("The log is not open.")
        wanted = set(topics)
        rows = self._reader.execute(
            "SELECT topic, partition, next_offset FROM committed WHERE consumer_group = ?", (group,)
        ).fetchall()
        return {Partition(topic, number): offset for topic, number, offset in rows if topic in wanted}

    async def commit(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Store the next offsets of a consumer group; durable when this returns."""
        rows = [(group, at.topic, at.partition, offset) for at, offset in offsets.items()]
        await self._submit(
            lambda connection: connection.executemany("INSERT OR REPLACE INTO committed VALUES (?, ?, ?, ?)", rows)
        )


class SqliteLogReader(LogReader):
    """Reads from every partition that is behind, so that a busy one does not starve the others."""

    def __init__(self, log: SqliteLog, positions: dict[Partition, int]) -> None:
        self._log = log
        self._positions = positions
        self._changed = log.subscribe()
        self._changed.set()

    async def read(self, *, timeout_s: float, max_records: int) -> list[Record]:
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                # not wait_for: before Python 3.12 it forgets a cancellation that comes together with the event
                async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                    await self._changed.wait()
            except TimeoutError:
                return []
            if records := self._next(max_records):  # else what changed was another partition
                return records

    def _next(self, max_records: int) -> list[Record]:
        self._changed.clear()
        behind = [at for at, offset in self._positions.items() if self._log.end(at) > offset]
        records: list[Record] = []
        for at in behind:
            found = self._log.fetch(at, self._positions[at], max(1, max_records // len(behind)))
            if found:
                self._positions[at] = found[-1].offset + 1
                records.extend(found)
        if records and any(self._log.end(at) > self._positions[at] for at in behind):
            self._changed.set()  # only after records: a partition that gives none would keep the loop busy
        return records

    async def close(self) -> None:
        self._log.unsubscribe(self._changed)


class _ForeignAppends:
    """Notices what other connections have appended; used on the writer's thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version: object = None  # so that the first check reports what is there already
        self._checked_at = 0.0

    @property
    def are_due(self) -> bool:
        return time.monotonic() - self._checked_at >= POLL_S

    def ends(self) -> dict[Partition, int]:
        """The ends of the partitions when others have written since the last check, else nothing.

        A file that cannot be read has nothing either.
        """
        self._checked_at = time.monotonic()
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()
            ends = {} if version == self._version else read_ends(self._connection)
        except sqlite3.Error:
            return {}  # the next append reports what is wrong
        self._version = version
        return ends


def _uncancelled(writes: Sequence[_Write]) -> list[_Write]:
    """The writes that are still waited for; from here on none of them can be cancelled."""
    return [write for write in writes if write.done.set_running_or_notify_cancel()]
