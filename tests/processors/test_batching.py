"""What makes a batch: whom it frees, for whom it waits, and for whom it does not wait again."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from processors.frame.batching import FULL_BYTES, Batcher
from storage.applied import AppliedPositions, Coverage
from streams.clock import SystemClock
from streams.errors import LogUnavailable
from streams.log.base import Record
from streams.positions import Freshness, Partition, Position
from streams.topics import MEMORY
from tests.patience import SOON_S

AT = Partition(MEMORY.name, 0)
AGES_S = 3600.0
"""What no test lives to see: nothing in it happens because time is up, unless the test says so."""


class Reading:
    """A log reader that gives what is put."""

    def __init__(self):
        self._records = asyncio.Queue()
        self.asked = 0

    def put(self, *offsets, value=b"{}"):
        self._records.put_nowait([Record(MEMORY.name, 0, offset, 0, b"k", value, ()) for offset in offsets])

    def fail(self):
        self._records.put_nowait(LogUnavailable("away"))

    async def read(self, *, timeout_s, max_records):
        self.asked += 1
        found = await self._records.get()
        if isinstance(found, LogUnavailable):
            raise found
        return found

    async def close(self):
        pass


@pytest.fixture
async def parts(monkeypatch):
    monkeypatch.setattr("processors.frame.batching.LINGER_S", AGES_S)
    reading, applied = Reading(), AppliedPositions()
    batcher = Batcher(reading, applied, SystemClock())
    yield reading, applied, batcher
    await batcher.close()


async def waits(applied, offset, stages=()):
    """Somebody who waits for the record at this offset."""
    token = Freshness.after([Position(MEMORY.name, 0, offset)])
    task = asyncio.create_task(applied.wait(token, timeout_s=AGES_S, stages=stages))
    await asyncio.sleep(0)
    return task


async def until(condition):
    async with asyncio.timeout(SOON_S):
        while not condition():
            await asyncio.sleep(0.001)


async def offsets(batcher):
    return [record.offset for record in await asyncio.wait_for(batcher.batch(), SOON_S)]


async def test_a_batch_that_frees_the_only_one_who_waits_goes_at_once(parts, monkeypatch):
    reading, applied, batcher = parts
    monkeypatch.setattr("processors.frame.batching.MAX_WAIT_FOR_CALLERS_S", AGES_S)
    batcher.took_s = AGES_S
    await waits(applied, 0)
    reading.put(0)
    assert await offsets(batcher) == [0]


async def test_while_others_wait_their_records_come_with_the_same_transaction(parts, monkeypatch):
    reading, applied, batcher = parts
    monkeypatch.setattr("processors.frame.batching.MAX_WAIT_FOR_CALLERS_S", AGES_S)
    batcher.took_s = AGES_S
    await waits(applied, 0)
    await waits(applied, 1)
    reading.put(0)
    batch = asyncio.create_task(offsets(batcher))
    await asyncio.sleep(0.05)
    assert not batch.done()
    reading.put(1)
    assert await batch == [0, 1]


async def test_nobody_is_waited_for_twice(parts, monkeypatch):
    reading, applied, batcher = parts
    batcher.took_s = AGES_S  # so that the bound is MAX_WAIT_FOR_CALLERS_S
    await waits(applied, 0)
    slow = await waits(applied, 9)
    reading.put(0)
    assert await offsets(batcher) == [0]  # after the bound, without the other
    applied.advance({AT: 1}, {})
    monkeypatch.setattr("processors.frame.batching.MAX_WAIT_FOR_CALLERS_S", AGES_S)
    await waits(applied, 1)
    reading.put(1)
    assert await offsets(batcher) == [1]
    assert not slow.done()


async def test_what_nobody_waits_for_gathers(monkeypatch):
    monkeypatch.setattr("processors.frame.batching.LINGER_S", 0.01)
    now = [0.0]
    reading = Reading()
    batcher = Batcher(reading, AppliedPositions(), SimpleNamespace(monotonic=lambda: now[0]))
    reading.put(0)
    batch = asyncio.create_task(offsets(batcher))
    await until(lambda: reading.asked == 2)  # the first is in hand, and more is read
    reading.put(1)
    await until(lambda: reading.asked == 3)
    assert not batch.done()
    now[0] = 0.01
    assert await batch == [0, 1]
    await batcher.close()


async def test_a_batch_of_enough_bytes_waits_for_no_further_record(parts):
    reading, _, batcher = parts
    reading.put(0, value=bytes(FULL_BYTES // 2))
    batch = asyncio.create_task(offsets(batcher))
    await until(lambda: reading.asked == 2)
    assert not batch.done()
    reading.put(1, value=bytes(FULL_BYTES // 2))
    assert await batch == [0, 1]


async def test_what_was_read_is_a_batch_when_the_log_goes_away_and_the_next_one_says_so(parts):
    reading, _, batcher = parts
    reading.put(0)
    reading.fail()
    reading.fail()
    assert await offsets(batcher) == [0]
    with pytest.raises(LogUnavailable):
        await batcher.batch()


async def test_a_patient_caller_hastens_no_stage_and_no_transaction():
    applied = AppliedPositions()
    batcher = asyncio.create_task(applied.linger({"embed"}, AGES_S))
    asked = applied.urgent_wait()
    await asyncio.sleep(0)
    waiting = asyncio.create_task(applied.wait(Freshness({AT: 1}), timeout_s=AGES_S, stages=["embed"], patient=True))
    await asyncio.sleep(0.02)
    assert not batcher.done() and not asked.done() and not applied.has_urgent_waiter("embed")
    assert applied.coverage({AT: 1}, {("embed", AT): 1}) is Coverage.NONE
    applied.advance({AT: 1}, {("embed", AT): 1})
    assert await asyncio.wait_for(waiting, SOON_S)
    batcher.cancel()


def test_a_position_never_falls():
    applied = AppliedPositions()
    applied.advance({AT: 5}, {("embed", AT): 4})
    applied.advance({AT: 3}, {("embed", AT): 2})
    assert (applied.next_offset(AT), applied.next_offset(AT, "embed")) == (5, 4)


async def test_who_begins_to_wait_for_a_stage_ends_the_gathering_of_that_stage_and_of_what_it_needs():
    applied = AppliedPositions()
    stages = {"extract": {"extract", "dedup"}, "dedup": {"dedup"}, "tensions": {"tensions"}}
    batcher = {name: asyncio.create_task(applied.linger(awaited, AGES_S)) for name, awaited in stages.items()}
    await asyncio.sleep(0)
    await waits(applied, 0, ["embed"])
    await asyncio.sleep(0.02)
    assert not any(task.done() for task in batcher.values())
    await waits(applied, 0, ["dedup"])
    await asyncio.wait_for(asyncio.gather(batcher["extract"], batcher["dedup"]), SOON_S)
    assert {name for name, task in batcher.items() if task.done()} == {"extract", "dedup"}
    await asyncio.wait_for(applied.linger({"dedup"}, AGES_S), SOON_S)  # somebody waits already
    batcher["tensions"].cancel()
