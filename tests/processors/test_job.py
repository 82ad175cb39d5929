"""A job looks at what the log has asked for, says what stands in its way, and ends when it is no longer wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from processors.frame import job as module
from processors.frame.job import Job, Progress
from storage.applied import AppliedPositions
from streams.errors import Unavailable
from streams.log import Log, Outgoing, open_log
from streams.positions import Partition
from streams.topics import DERIVED, with_partitions
from tests.patience import PATIENCE_S


@pytest_asyncio.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    log = open_log(f"sqlite://{tmp_path}/log.db")
    await log.start()
    await log.create_topics(with_partitions(1))
    yield log
    await log.stop()


async def never() -> None:
    raise AssertionError("It was looked at before all was applied.")


async def wanted() -> bool:
    return True


async def test_the_first_look_waits_until_the_facts_of_former_runs_are_applied(log: Log) -> None:
    await log.publish([Outgoing(DERIVED.name, b"k", b"{}", (), 0)])
    applied, looked = AppliedPositions(), asyncio.Event()

    async def look() -> None:
        assert applied.next_offset(Partition(DERIVED.name, 0)) == 1
        looked.set()

    running = asyncio.ensure_future(Job("a test", log, applied, look).run())
    done, _ = await asyncio.wait({running}, timeout=0.2)
    assert not done and not looked.is_set()
    applied.advance({Partition(DERIVED.name, 0): 1}, {})
    await asyncio.wait_for(looked.wait(), PATIENCE_S)
    running.cancel()


async def test_what_stands_in_the_way_is_said_and_a_request_has_it_tried_at_once(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RETRY_S", 1e6)
    looks = asyncio.Semaphore(0)

    async def look() -> None:
        job.progress = Progress("a space", 1, 2)
        looks.release()
        if not mended:
            raise Unavailable("The model does not load.")

    mended, job = False, Job("a test", log, AppliedPositions(), look)
    running = asyncio.ensure_future(job.run())
    async with asyncio.timeout(PATIENCE_S):
        await looks.acquire()
        while job.problem is None:
            await asyncio.sleep(0)
        assert job.problem == "The model does not load." and job.progress is None
        mended = True
        job.wake()
        await looks.acquire()
        await asyncio.sleep(0.01)
    assert job.problem is None and not running.done()
    running.cancel()


async def test_work_that_hangs_is_aborted_as_soon_as_it_is_not_wanted(log: Log) -> None:
    job, is_by_user, ended = Job("a test", log, AppliedPositions(), never), True, asyncio.Event()

    async def work() -> bool:
        job.progress = Progress("a space", 1, 2)
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return True

    async def is_wanted() -> bool:
        return is_by_user

    doing = asyncio.ensure_future(job.while_wanted(work(), is_wanted))
    while job.progress is None:
        await asyncio.sleep(0)
    is_by_user = False
    assert await asyncio.wait_for(doing, PATIENCE_S) is None
    assert ended.is_set()
    assert 2 * module.ABORT_POLL_S <= 0.1


async def test_work_that_ends_gives_its_result_and_work_that_fails_its_error(log: Log) -> None:
    job = Job("a test", log, AppliedPositions(), never)

    async def work(fails: bool) -> int:
        if fails:
            raise Unavailable("The log is away.")
        return 7

    assert await job.while_wanted(work(False), wanted) == 7
    with pytest.raises(Unavailable, match="The log is away"):
        await job.while_wanted(work(True), wanted)

    async def unwanted() -> bool:
        await asyncio.sleep(0)  # the work ends meanwhile
        return False

    assert await job.while_wanted(work(False), unwanted) is None


async def test_a_process_that_stops_ends_the_work_too(log: Log) -> None:
    job, begun, ended = Job("a test", log, AppliedPositions(), never), asyncio.Event(), asyncio.Event()

    async def work() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    doing = asyncio.ensure_future(job.while_wanted(work(), wanted))
    await begun.wait()
    doing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await doing
    assert ended.is_set()
