"""Two readers as one: nothing that either brings waits for the other, or is lost with it."""

from __future__ import annotations

import asyncio

import pytest

from streams.errors import LogUnavailable
from streams.log.base import LogReader, Record
from streams.log.merged_reader import MergedReader

MOMENT_S = 0.02


class Scripted(LogReader):
    """Brings what it is given, raises what it is given, and otherwise waits."""

    def __init__(self) -> None:
        self.next: asyncio.Queue[Record | Exception] = asyncio.Queue()
        self.closed = False

    async def read(self, *, timeout_s: float, max_records: int) -> list[Record]:
        found = await self.next.get()
        if isinstance(found, Exception):
            raise found
        return [found]

    async def close(self) -> None:
        self.closed = True


def record(offset: int) -> Record:
    return Record("t", 0, offset, 0, None, b"")


async def offsets(both: MergedReader, timeout_s: float = 30.0, max_records: int = 10) -> list[int]:
    return [found.offset for found in await both.read(timeout_s=timeout_s, max_records=max_records)]


async def test_what_one_brings_does_not_wait_for_the_other_and_a_read_without_any_is_empty() -> None:
    one, other = Scripted(), Scripted()
    both = MergedReader(one, other)
    assert await offsets(both, MOMENT_S) == []
    other.next.put_nowait(record(1))
    assert await offsets(both) == [1]
    one.next.put_nowait(record(2))
    other.next.put_nowait(record(3))
    assert await offsets(both, MOMENT_S, 0) == []
    assert sorted(await offsets(both, max_records=1) + await offsets(both, max_records=1)) == [2, 3]
    await both.close()
    assert one.closed and other.closed


async def test_what_one_brings_while_the_other_fails_is_read_and_the_failure_raised_afterwards() -> None:
    one, other = Scripted(), Scripted()
    both = MergedReader(one, other)
    one.next.put_nowait(LogUnavailable("away"))
    other.next.put_nowait(record(1))
    assert await offsets(both) == [1]
    with pytest.raises(LogUnavailable):
        await offsets(both)
    one.next.put_nowait(record(2))
    assert await offsets(both) == [2]
    await both.close()


async def test_a_read_that_is_given_up_loses_nothing() -> None:
    one = Scripted()
    both = MergedReader(one, Scripted())
    reading = asyncio.create_task(both.read(timeout_s=30.0, max_records=10))
    await asyncio.sleep(0)
    reading.cancel()
    await asyncio.wait([reading])
    one.next.put_nowait(record(1))
    assert await offsets(both) == [1]
    await both.close()
