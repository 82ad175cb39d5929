"""How an agent runs its stage.

The next batch is derived while the last is published, in order, and whatever fails crashes the app.
"""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from faust.types import TP

from processors.frame import faust_app as worker
from processors.frame.stage import StageRunner
from processors.talos.stages.extract import Extract
from streams.clock import SystemClock
from streams.codec import encode
from streams.errors import LogUnavailable, StageStopped
from streams.log.base import Log
from streams.positions import Partition, Position
from streams.sqlite_transport import Consumer
from streams.topics import MEMORY
from tests.patience import SOON_S
from tests.processors.harness import event


class SlowLog:
    """A log whose appends are done when the test says so."""

    def __init__(self):
        self.appending, self.allowed = [], asyncio.Semaphore(0)

    largest = Log.largest

    async def publish(self, records, *, timeout_s):
        self.appending.append(records)
        await self.allowed.acquire()
        return [Position(record.topic, record.partition or 0, 0) for record in records]


class Fed:
    """A Faust event: a message, and whether it was acknowledged."""

    def __init__(self, number):
        body = encode(
            MEMORY.name,
            event("talos.journal.written", {"content": f"text {number}", "category": "insight"}, id=f"e{number}"),
        )
        self.message = SimpleNamespace(
            topic=MEMORY.name,
            partition=0,
            offset=number,
            timestamp=0.0,
            key=body.key,
            value=body.value,
            headers=body.headers,
        )
        self.is_acknowledged = False

    def ack(self):
        self.is_acknowledged = True


class App:
    """What an agent's work sees of Faust's app."""

    def __init__(self):
        self.crashed = asyncio.get_running_loop().create_future()

    async def crash(self, error):
        if not self.crashed.done():
            self.crashed.set_result(error)


async def until(condition):
    async with asyncio.timeout(SOON_S):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture
async def agent():
    """The two works of an agent, fed by `waiting`."""
    stage = Extract()
    stage.batch_size = 1
    parts = SimpleNamespace(app=App(), log=SlowLog(), waiting=asyncio.Queue(), leaving=asyncio.Event())
    parts.runner = StageRunner(stage, parts.log, SystemClock())
    derived = asyncio.Queue(maxsize=1)
    works = worker._derive(parts.runner, parts.waiting, derived), worker._publish(parts.runner, derived)
    parts.tasks = [
        asyncio.create_task(worker._crashing(parts.app, parts.runner, work, parts.leaving)) for work in works
    ]
    yield parts
    parts.leaving.set()
    for task in parts.tasks:
        task.cancel()
    await asyncio.gather(*parts.tasks, return_exceptions=True)


async def test_the_next_batch_is_derived_while_the_last_is_published_and_none_is_acknowledged_before(
    agent, monkeypatch
):
    derived = []
    facts = Extract.facts

    async def noted(self, events):
        derived.append([logged.event.id for logged in events])
        return await facts(self, events)

    monkeypatch.setattr(Extract, "facts", noted)
    fed = [Fed(number) for number in range(3)]
    for one in fed:
        agent.waiting.put_nowait(one)
    await until(lambda: len(derived) == 3)
    assert len(agent.log.appending) == 1
    assert not any(one.is_acknowledged for one in fed)
    for number in range(3):
        agent.log.allowed.release()
        await until(lambda number=number: fed[number].is_acknowledged)
    assert [one.is_acknowledged for one in fed] == [True] * 3
    assert [b"text 0" in agent.log.appending[0][0].value, b"text 2" in agent.log.appending[2][0].value] == [True, True]
    assert agent.runner.processed == 3


async def test_a_log_that_refuses_crashes_the_app_at_once(agent, monkeypatch):
    async def refuse(records, *, timeout_s):
        raise RuntimeError("no space left")

    monkeypatch.setattr(agent.log, "publish", refuse)
    one = Fed(0)
    agent.waiting.put_nowait(one)
    error = await asyncio.wait_for(agent.app.crashed, SOON_S)
    assert (str(error), agent.runner.life, one.is_acknowledged) == ("no space left", "dead", False)


async def test_a_work_that_is_cancelled_from_inside_crashes_the_app_and_one_that_leaves_does_not(agent):
    agent.tasks[0].cancel()
    assert isinstance(await asyncio.wait_for(agent.app.crashed, SOON_S), StageStopped)
    agent.app.crashed = asyncio.get_running_loop().create_future()
    agent.leaving.set()
    agent.tasks[1].cancel()
    await asyncio.gather(*agent.tasks, return_exceptions=True)
    assert not agent.app.crashed.done()


class FullLog:
    """A log that takes what is committed only while there is room."""

    def __init__(self):
        self.has_room, self.committed = False, {}

    async def commit(self, group, offsets):
        if not self.has_room:
            raise LogUnavailable("The log file cannot be written: database or disk is full.")
        self.committed |= offsets


async def test_positions_that_the_log_does_not_take_end_nothing_and_are_written_with_the_next():
    log = FullLog()
    consumer = SimpleNamespace(log_file=log, app=SimpleNamespace(conf=SimpleNamespace(id="group")), _uncommitted={})
    assert not await Consumer._commit(consumer, {TP("a", 0): 3, TP("a", 1): 5})
    log.has_room = True
    assert await Consumer._commit(consumer, {TP("a", 0): 4})
    assert log.committed == {Partition("a", 0): 4, Partition("a", 1): 5}
    assert await Consumer._commit(consumer, {}) and consumer._uncommitted == {}
