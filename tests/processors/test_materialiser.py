"""The materialiser over a real log: what it applies, where it starts, and what it refuses to start from."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import duckdb
import pytest

from processors.frame import batching, materialiser
from processors.frame.materialiser import CONSECUTIVE_FAILURES, Materialiser, TooManyFailures
from processors.frame.reducer import reducers
from processors.telemetry.mirror import TelemetryMirror
from storage import writer
from storage.applied import AppliedPositions
from storage.buffers import cached_bytes
from storage.database import FILE_NAME, Database
from storage.search.index_set import IndexSet
from storage.search.records.hits import DocumentRows
from storage.writer import Writer
from streams import failpoints
from streams.clock import SystemClock
from streams.codec import encode
from streams.dlq import exhume
from streams.errors import LogUnavailable, StoreError
from streams.events import CONNECTION, wire_type
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Freshness
from streams.topics import INVOCATIONS, MEMORY, TELEMETRY, with_partitions
from tests.patience import SOON_S
from tests.processors.harness import event
from tests.schema import migrated_home, tables

POISON = Outgoing(
    INVOCATIONS.name, b"default", b"{", (("ce_id", b"x"), ("ce_source", b"s"), ("ce_type", b"thalweg.tool.invoked.v1"))
)


def invoked(number: int):
    return encode(INVOCATIONS.name, event("tool.invoked", {"tool": "reflect", "outcome": "ok"}, id=f"i{number}"))


class Running:
    """A store that follows a log."""

    def __init__(self, home, log):
        self.database = Database(home if (home / FILE_NAME).exists() else migrated_home(home))
        self.writer, self.applied = Writer(self.database, tables()), AppliedPositions()
        self.indexes = indexes = IndexSet(home / "indexes", self.database.cursor, None)
        indexes.open({})
        topics, mirror = [t.name for t in with_partitions(2)], TelemetryMirror(home / "telemetry", SystemClock())
        self.materialiser = Materialiser(log, topics, self.writer, indexes, self.applied, SystemClock(), mirror=mirror)

    def sql(self, query):
        return self.database.cursor().execute(query).fetchall()

    def close(self):
        self.materialiser.thread.shutdown()
        self.writer.close()
        self.database.close()


@pytest.fixture
async def log(tmp_path):
    log = SqliteLog(tmp_path / "log.db")
    await log.start()
    await log.create_topics(with_partitions(2))
    yield log
    await log.stop()


@contextlib.asynccontextmanager
async def running(home, log):
    home.mkdir(exist_ok=True)
    store = Running(home, log)
    task = store.task = asyncio.create_task(store.materialiser.run())
    try:
        yield store
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        store.close()


async def test_what_is_published_is_applied_and_can_be_waited_for(tmp_path, log):
    async with running(tmp_path / "home", log) as store:
        positions = await log.publish([invoked(1), invoked(2)])
        assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)
        assert store.sql("SELECT count(*) FROM invocations") == [(2,)]


async def test_what_searches_know_of_an_applied_record_is_what_the_table_has(tmp_path, log):
    entry = {"content": "I realized that Å\U0001f30a bends.\n", "category": "insight", "domain": "rivers"}
    events = [
        event("talos.journal.written", entry | {"session_id": "2026-01-05-alone"}, id="e1"),
        event("talos.journal.written", entry, id="e2").changed(extensions={CONNECTION: "c1"}),
    ]
    async with running(tmp_path / "home", log) as store:
        positions = await log.publish([encode(MEMORY.name, each) for each in events])
        assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)
        cursor = store.database.cursor()
        labels = [label for (label,) in store.sql("SELECT label FROM documents")]
        read = DocumentRows().hits(cursor, events[0].namespace, labels)
        cursor.execute("DELETE FROM documents")
        assert len(read) == len(labels) >= 2
        assert store.indexes.records.documents.hits(cursor, events[0].namespace, labels) == read


async def test_a_restart_goes_on_from_the_positions_in_the_store(tmp_path, log):
    async with running(tmp_path / "home", log) as store:
        assert await store.applied.wait(Freshness.after(await log.publish([invoked(1)])), timeout_s=SOON_S)
    positions = await log.publish([invoked(2)])
    async with running(tmp_path / "home", log) as store:
        assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)
        assert store.materialiser.counters.records == 1
        assert store.sql("SELECT count(*) FROM invocations") == [(2,)]


async def test_a_store_that_is_never_idle_folds_a_large_write_ahead_log_into_its_file_now_and_then(
    tmp_path, log, monkeypatch
):
    monkeypatch.setattr(writer, "LARGE_LOG_BYTES", 1)
    monkeypatch.setattr(writer, "LARGE_LOG_SHARE", 0.0)
    async with running(tmp_path / "home", log) as store:
        assert await store.applied.wait(Freshness.after(await log.publish([invoked(1)])), timeout_s=SOON_S)
        assert store.database.log_bytes > 0  # the last checkpoint is not a minute ago
        monkeypatch.setattr(materialiser, "MAINTENANCE_S", 0.0)
        assert await store.applied.wait(Freshness.after(await log.publish([invoked(2)])), timeout_s=SOON_S)
        async with asyncio.timeout(SOON_S):
            while store.database.log_bytes:
                await asyncio.sleep(0.01)
        assert store.sql("SELECT count(*) FROM invocations") == [(2,)]


@pytest.mark.parametrize("is_idle", [True, False])
async def test_what_duckdb_keeps_in_memory_goes_now_and_then_while_no_call_runs(tmp_path, log, monkeypatch, is_idle):
    released: list[object] = []
    monkeypatch.setattr(batching, "IDLE_S", 0.05 if is_idle else SOON_S)
    monkeypatch.setattr(materialiser, "MAINTENANCE_S", SOON_S if is_idle else 0.0)
    monkeypatch.setattr(writer, "LARGE_CACHE_BYTES", 0)
    monkeypatch.setattr(writer, "release_buffers", released.append)
    async with running(tmp_path / "home", log) as store:
        with store.indexes.serving():
            assert await store.applied.wait(Freshness.after(await log.publish([invoked(1)])), timeout_s=SOON_S)
            await asyncio.sleep(0.2)
            assert not released  # the query of the call may fail
        if not is_idle:
            assert await store.applied.wait(Freshness.after(await log.publish([invoked(2)])), timeout_s=SOON_S)
        async with asyncio.timeout(SOON_S):
            while not released:
                await asyncio.sleep(0.01)


async def test_a_small_cache_of_duckdb_stays(tmp_path, log, monkeypatch):
    released: list[object] = []
    sizes: list[int] = []

    def seen(cursor: duckdb.DuckDBPyConnection) -> int:
        sizes.append(cached_bytes(cursor))
        return sizes[-1]

    monkeypatch.setattr(materialiser, "MAINTENANCE_S", 0.0)
    monkeypatch.setattr(writer, "release_buffers", released.append)
    monkeypatch.setattr(writer, "cached_bytes", seen)
    async with running(tmp_path / "home", log) as store:
        for number in (1, 2):
            assert await store.applied.wait(Freshness.after(await log.publish([invoked(number)])), timeout_s=SOON_S)
    assert sizes and max(sizes) <= writer.LARGE_CACHE_BYTES and not released


@pytest.mark.parametrize(("log_mb", "file_mb", "is_large"), [(7, 1, False), (8, 60, True), (8, 1000, False)])
def test_a_checkpoint_pays_off_by_what_it_folds_in_and_what_it_writes_again(
    tmp_path, monkeypatch, log_mb, file_mb, is_large
):
    monkeypatch.setattr(Database, "log_bytes", log_mb << 20)
    monkeypatch.setattr(Database, "file_bytes", file_mb << 20)
    with contextlib.closing(Database(migrated_home(tmp_path))) as database:
        assert Writer(database, tables()).has_large_log is is_large


async def test_a_dead_letter_is_buried_once_even_when_the_store_is_rebuilt(tmp_path, log):
    for home in ("first", "second"):
        async with running(tmp_path / home, log) as store:
            positions = await log.publish([POISON] if home == "first" else [invoked(1)])
            assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)
            ends = await log.end_offsets([INVOCATIONS.dlq.name])
            assert sum(ends.values()) == 1
            letters = Freshness({at: end for at, end in ends.items() if end})
            assert await store.applied.wait(letters, timeout_s=SOON_S)
            assert store.sql("SELECT count(*), min(stage) FROM dead_letters") == [(1, "materialise")]


def applied_by(store):
    """What the store has of the topic: how far it is applied, and the dead letters of it."""
    [(reached,)] = store.sql(f"SELECT coalesce(sum(next_offset), 0) FROM positions WHERE topic = '{INVOCATIONS.name}'")
    [(buried,)] = store.sql("SELECT count(*) FROM dead_letters")
    return reached, buried


async def test_a_dead_letter_is_on_the_log_before_its_batch_is_committed_and_a_start_between_them_buries_no_second_one(
    tmp_path, log, monkeypatch
):
    for setting, value in (("_name", "after_bury"), ("_left", 1), ("_kind", "raise")):
        monkeypatch.setattr(failpoints, setting, value)
    positions = await log.publish([POISON])
    async with running(tmp_path / "home", log) as store:
        with pytest.raises(failpoints.FailpointReached):
            await asyncio.wait_for(asyncio.shield(store.task), SOON_S)
        assert sum((await log.end_offsets([INVOCATIONS.dlq.name])).values()) == 1
        assert applied_by(store) == (0, 0)
    async with running(tmp_path / "home", log) as store:
        assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)
        assert sum((await log.end_offsets([INVOCATIONS.dlq.name])).values()) == 1
        assert applied_by(store) == (1, 1)


async def test_a_dead_letter_that_the_log_does_not_take_keeps_its_batch_from_being_committed(
    tmp_path, log, monkeypatch
):
    async def refused(records, **_):
        raise LogUnavailable("The log is full.")

    await log.publish([POISON])
    monkeypatch.setattr(log, "publish", refused)
    async with running(tmp_path / "home", log) as store:
        with pytest.raises(LogUnavailable):
            await asyncio.wait_for(asyncio.shield(store.task), SOON_S)
        assert applied_by(store) == (0, 0)


async def test_a_store_that_was_deleted_is_replayed_without_repeating_lines_of_the_mirror(tmp_path, log):
    def called(number):
        return encode(
            TELEMETRY.name, event("session.tool_call", {"attributes": {"talos.tool.name": "read"}}, id=f"c{number}")
        )

    before = Freshness()
    for number in range(2):
        async with running(tmp_path / "home", log) as store:
            assert await store.applied.wait(before, timeout_s=SOON_S)  # what lay there at the start
            others = encode(
                INVOCATIONS.name, event("tool.invoked", {"tool": "reflect", "outcome": "ok"}, id=f"i{number}")
            )
            before = Freshness.after(await log.publish([called(number), others]))
            assert await store.applied.wait(before, timeout_s=SOON_S)
            assert store.sql("SELECT count(*) FROM events") == [(2 * (number + 1),)]
        (tmp_path / "home" / "thalweg.duckdb").unlink()
    assert len((tmp_path / "home" / "telemetry" / "events.jsonl").read_bytes().splitlines()) == 2


async def test_when_reducers_fail_on_everything_it_stops_rather_than_divert_everything_and_what_it_diverted_is_replayed(
    tmp_path, log, monkeypatch
):
    count, kind = 3 * CONSECUTIVE_FAILURES, wire_type("tool.invoked")
    monkeypatch.setitem(reducers(), kind, replace(reducers()[kind], apply=lambda *given: 1 / 0))
    await log.publish([invoked(number) for number in range(count)])
    async with running(tmp_path / "home", log) as store:
        with pytest.raises(TooManyFailures, match="ZeroDivisionError"):
            await asyncio.wait_for(asyncio.shield(store.task), SOON_S)
        assert store.sql("SELECT count(*) FROM invocations") == [(0,)]
        diverted = await log.end_offsets([INVOCATIONS.dlq.name])
        assert sum(diverted.values()) == CONSECUTIVE_FAILURES
    async with running(tmp_path / "home", log) as store:  # as a supervisor would start it
        with pytest.raises(TooManyFailures, match="nothing more is diverted"):
            await asyncio.wait_for(asyncio.shield(store.task), SOON_S)
        assert await log.end_offsets([INVOCATIONS.dlq.name]) == diverted
    monkeypatch.undo()  # the code is mended
    async with running(tmp_path / "home", log) as store:
        assert await store.applied.wait(
            Freshness(await log.end_offsets([INVOCATIONS.name, INVOCATIONS.dlq.name])), timeout_s=SOON_S
        )
        rows = "SELECT (SELECT count(*) FROM invocations), (SELECT count(*) FROM dead_letters)"
        assert store.sql(rows) == [(count - CONSECUTIVE_FAILURES, CONSECUTIVE_FAILURES)]
        assert not store.database.is_given_up
        reader = await log.reader(dict.fromkeys(diverted, 0))
        letters = await reader.read(timeout_s=SOON_S, max_records=count)
        await reader.close()
        assert await store.applied.wait(
            Freshness.after(await log.publish([exhume(letter) for letter in letters])), timeout_s=SOON_S
        )
        assert store.sql(rows) == [(count, CONSECUTIVE_FAILURES)]


async def test_an_event_on_which_the_code_always_fails_is_a_dead_letter_and_its_partition_moves_on(
    tmp_path, log, monkeypatch
):
    kind = wire_type("tool.invoked")
    mended = reducers()[kind]
    fragile = replace(
        mended, apply=lambda logged, rows: 1 / 0 if logged.event.id == "i1" else mended.apply(logged, rows)
    )
    monkeypatch.setitem(reducers(), kind, fragile)
    async with running(tmp_path / "home", log) as store:
        positions = await log.publish([invoked(number) for number in range(3)])
        assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)
        letters = Freshness(await log.end_offsets([INVOCATIONS.dlq.name]))
        assert await store.applied.wait(letters, timeout_s=SOON_S)
        assert store.sql("SELECT count(*) FROM invocations") == [(2,)]
        assert store.sql("SELECT error_type, stage FROM dead_letters") == [("ZeroDivisionError", "materialise")]


async def test_a_store_that_is_ahead_of_its_log_is_refused_with_what_to_do(tmp_path, log):
    async with running(tmp_path / "home", log) as store:
        assert await store.applied.wait(Freshness.after(await log.publish([invoked(1)])), timeout_s=SOON_S)
    other = SqliteLog(tmp_path / "other.db")
    await other.start()
    await other.create_topics(with_partitions(2))
    store = Running(tmp_path / "home", other)
    with pytest.raises(StoreError, match=r"do not belong together\. Point at the right log"):
        await store.materialiser.run()
    store.close()
    await other.stop()


class DownBetweenReads:
    """A reader whose log is gone for one moment.

    Right after the first read that returned records, while more are gathered.
    """

    def __init__(self, reader):
        self._reader, self.outages, self._after_records = reader, 0, False

    async def read(self, *, timeout_s, max_records):
        if self._after_records and not self.outages:
            self.outages += 1
            raise LogUnavailable("the log went down")
        records = await self._reader.read(timeout_s=timeout_s, max_records=max_records)
        self._after_records = bool(records)
        return records

    async def close(self):
        await self._reader.close()


async def test_what_the_first_read_took_is_applied_when_the_log_goes_down_before_the_second(tmp_path, log, monkeypatch):
    readers, open_reader = [], log.reader

    async def reader(start):
        readers.append(DownBetweenReads(await open_reader(start)))
        return readers[-1]

    monkeypatch.setattr(log, "reader", reader)
    async with running(tmp_path / "home", log) as store:
        for number in range(3):
            positions = await log.publish([invoked(number)])
            # so that the batch gathers
            assert await store.applied.wait(Freshness.after(positions), timeout_s=SOON_S, patient=True)
        assert sum(reader.outages for reader in readers) >= 1
        assert store.sql("SELECT count(*) FROM events") == [(3,)]
