"""The embedded log: one WAL-mode SQLite file, so that a node needs nothing else.

One writer thread commits whatever has gathered as one transaction (`synchronous=FULL`: answered means synced).
Offsets are taken inside that transaction, so another process (an import beside a running node) may append too; its
records are noticed within POLL_S. Reading never waits for writing, and what this process appended last is read from memory:
each step of a query gives up the interpreter, and the event loop then waits for it behind every other thread.
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

import orjson

from streams.errors import LogUnavailable, SettingsError
from streams.files import make_directory
from streams.log.base import Headers, Log, LogReader, Outgoing, Record
from streams.log.tail_cache import TailCache
from streams.partitioning import partition_for
from streams.positions import Partition, Position
from streams.topics import Topic

POLL_S = 0.05
MAX_READ_BYTES = 4 * 1024 * 1024
OFFSET_BITS = 40
SCHEMA = """
CREATE TABLE IF NOT EXISTS partitions (
    id INTEGER PRIMARY KEY, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL DEFAULT 0,
    UNIQUE (topic, partition));
CREATE TABLE IF NOT EXISTS records (
    place INTEGER PRIMARY KEY, timestamp_ms INTEGER NOT NULL, key BLOB, value BLOB, headers BLOB);
CREATE TABLE IF NOT EXISTS committed (
    consumer_group TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL, next_offset INTEGER NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class _Job:
    """Work for the writer thread: what to do inside the transaction, and who waits for it."""

    run: Callable[[sqlite3.Connection], object]
    done: Future[object]


class SqliteLog(Log):
    """The log in one file. Several may be open on the same file, in this process or others."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._partitions: dict[Partition, int] = {}
        self._counts: dict[str, int] = {}
        self._ends: dict[Partition, int] = {}
        self._changed: list[asyncio.Event] = []
        self._writer: threading.Thread | None = None
        self._reader: sqlite3.Connection | None = None
        self._newest = TailCache()
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
                f"The log file {self.path} cannot be opened: {str(error).rstrip('.')}. Restore it, or choose another with THALWEG_BROKER or THALWEG_HOME."
            ) from error
        self._loop = asyncio.get_running_loop()
        self._load_partitions()
        self._ends = self._read_ends()
        self._writer = threading.Thread(target=self._write_forever, args=(connection,), name="log-writer", daemon=True)
        self._writer.start()

    async def stop(self) -> None:
        if self._writer is None:
            return
        self._jobs.put(None)
        await asyncio.to_thread(self._writer.join)
        self._writer = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False, timeout=10.0)
        connection.executescript(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA cache_size=-16000; PRAGMA mmap_size=268435456;"
        )
        return connection

    # --- writing

    def _write_forever(self, connection: sqlite3.Connection) -> None:
        others = _Others(connection)
        while True:
            if others.are_due and (ends := others.ends()):
                self._tell(ends, [])
            try:
                job = self._jobs.get(timeout=POLL_S)
            except queue.Empty:
                continue
            jobs: list[_Job] = []
            while job is not None:
                jobs.append(job)
                if self._jobs.empty() or len(jobs) >= 1000:
                    break
                job = self._jobs.get()
            if jobs:
                self._commit(connection, jobs)
            if job is None:
                connection.close()
                return

    def _commit(self, connection: sqlite3.Connection, jobs: Sequence[_Job]) -> None:
        """All jobs in one transaction, one sync; when it fails, all of them fail. Whose caller has given up is left out."""
        awaited: list[_Job] | None = None
        results: list[object] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            awaited = _awaited(jobs)
            results = [job.run(connection) for job in awaited]
            connection.execute("COMMIT")
        except BaseException as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = (
                LogUnavailable(f"The log file cannot be written: {error}.")
                if isinstance(error, sqlite3.Error)
                else error
            )
            for job in _awaited(jobs) if awaited is None else awaited:
                job.done.set_exception(failure)
            return
        appended: list[Record] = [record for result in results if isinstance(result, list) for record in result]
        if appended:
            self._tell({Partition(record.topic, record.partition): record.offset + 1 for record in appended}, appended)
        for job, result in zip(awaited, results, strict=True):
            job.done.set_result(result)

    def _tell(self, ends: Mapping[Partition, int], appended: Sequence[Record]) -> None:
        """Let the event loop know what is on the log now."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._notify, ends, appended)

    async def _submit(self, run: Callable[[sqlite3.Connection], object], timeout_s: float = 10.0) -> object:
        if self._writer is None:
            raise LogUnavailable("The log is not open.")
        done: Future[object] = Future()
        self._jobs.put(_Job(run, done))
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
                    f"The topic {topic.name} has {existing} partitions, not {topic.partitions}; the number is chosen once. "
                    f"Set `partitions = {existing}` or use another THALWEG_HOME."
                )
            if existing == 0:
                await self._submit(functools.partial(_add_topic, topic=topic))
                created.append(topic.name)
                self._load_partitions()
        return created

    def partition_count(self, topic: str) -> int:
        """How many partitions the topic has; 0 when it does not exist."""
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
        now_ms = time.time_ns() // 1_000_000
        appended = await self._submit(lambda connection: _append(connection, placed, now_ms), timeout_s)
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
        return _all_ends(self._reader)

    def _notify(self, ends: Mapping[Partition, int], appended: Sequence[Record]) -> None:
        """Take in new ends; wake the readers when there is anything that they have not been told of."""
        if self._changed:  # an import reads nothing back
            self._newest.add(appended)
        news = [(at, offset) for at, offset in ends.items() if offset > self._ends.get(at, 0)]
        self._ends.update(news)
        if news:
            for changed in self._changed:
                changed.set()

    def end(self, at: Partition) -> int:
        """The next offset to be written, as known to this process: at most POLL_S old for what others append."""
        return self._ends.get(at, 0)

    def subscribe(self) -> asyncio.Event:
        """An event that is set whenever something was appended; give it back with `unsubscribe`."""
        changed = asyncio.Event()
        self._changed.append(changed)
        return changed

    def unsubscribe(self, changed: asyncio.Event) -> None:
        if changed in self._changed:
            self._changed.remove(changed)

    def fetch(self, at: Partition, offset: int, limit: int) -> list[Record]:
        """Up to `limit` records (and about MAX_READ_BYTES) of a partition from an offset, in order."""
        if newest := self._newest.since(at, offset, limit):
            return newest
        if self._reader is None:
            return []
        if at not in self._partitions:  # a topic that another process has made since
            self._load_partitions()
        place = self._partitions.get(at)
        if place is None:
            return []
        low = place << OFFSET_BITS
        rows = self._reader.execute(
            "SELECT place, timestamp_ms, key, value, headers FROM records WHERE place >= ? AND place < ? ORDER BY place LIMIT ?",
            (low + offset, low + (1 << OFFSET_BITS), limit),
        )
        records: list[Record] = []
        size = 0
        for number, timestamp_ms, key, value, headers in rows:
            records.append(
                Record(at.topic, at.partition, number - low, timestamp_ms, key, value, _read_headers(headers))
            )
            size += len(value or b"")
            if size >= MAX_READ_BYTES:
                break
        rows.close()
        return records

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
        """Record how far a consumer group has come; durable when this returns."""
        rows = [(group, at.topic, at.partition, offset) for at, offset in offsets.items()]
        await self._submit(
            lambda connection: connection.executemany("INSERT OR REPLACE INTO committed VALUES (?, ?, ?, ?)", rows)
        )


class SqliteLogReader(LogReader):
    """Walks the partitions in turn, so that a busy one does not starve the others."""

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
            self._changed.set()  # only after some: a partition that gives none would keep the loop busy for ever
        return records

    async def close(self) -> None:
        self._log.unsubscribe(self._changed)


class _Others:
    """Notices what others than this connection have appended; used on its thread."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._version: object = None  # what came before the first look is told by it
        self._looked_at = 0.0

    @property
    def are_due(self) -> bool:
        return time.monotonic() - self._looked_at >= POLL_S

    def ends(self) -> dict[Partition, int]:
        """Where the partitions end when others have written since the last look; nothing otherwise, or when the file cannot be read."""
        self._looked_at = time.monotonic()
        try:
            version = self._connection.execute("PRAGMA data_version").fetchone()
            ends = {} if version == self._version else _all_ends(self._connection)
        except sqlite3.Error:
            return {}  # whoever appends next is told what is wrong
        self._version = version
        return ends


def _all_ends(connection: sqlite3.Connection) -> dict[Partition, int]:
    rows = connection.execute("SELECT topic, partition, next_offset FROM partitions").fetchall()
    return {Partition(topic, number): offset for topic, number, offset in rows}


def _add_topic(connection: sqlite3.Connection, topic: Topic) -> None:
    rows = [(topic.name, number) for number in range(topic.partitions)]
    connection.executemany("INSERT OR IGNORE INTO partitions(topic, partition) VALUES (?, ?)", rows)


def _awaited(jobs: Sequence[_Job]) -> list[_Job]:
    """The jobs that somebody still waits for; from here on none of them can be given up."""
    return [job for job in jobs if job.done.set_running_or_notify_cancel()]


def _append(connection: sqlite3.Connection, placed: Sequence[tuple[Partition, Outgoing]], now_ms: int) -> list[Record]:
    heads: dict[Partition, tuple[int, int]] = {}
    rows, appended = [], []
    for at, record in placed:
        if at not in heads:
            heads[at] = connection.execute(
                "SELECT id, next_offset FROM partitions WHERE topic = ? AND partition = ?", at
            ).fetchone()
        place, offset = heads[at]
        heads[at] = place, offset + 1
        rows.append(((place << OFFSET_BITS) + offset, now_ms, record.key, record.value, _write_headers(record.headers)))
        appended.append(Record(*at, offset, now_ms, record.key, record.value, tuple(record.headers)))
    connection.executemany("INSERT INTO records VALUES (?, ?, ?, ?, ?)", rows)
    connection.executemany(
        "UPDATE partitions SET next_offset = ? WHERE id = ?", [(offset, place) for place, offset in heads.values()]
    )
    return appended


def _write_headers(headers: Headers) -> bytes:
    return orjson.dumps([[name, value.decode("latin-1")] for name, value in headers])


def _read_headers(raw: bytes | None) -> Headers:
    return tuple((name, value.encode("latin-1")) for name, value in orjson.loads(raw or b"[]"))
