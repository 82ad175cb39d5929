"""`status` on a real node: red when a stage is behind, stuck or dead, and green again by itself once it is not."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from processors.frame.stage import StageParts
from processors.talos.stages.extract import Extract
from streams.codec import encode
from streams.events import Event, LoggedEvent
from streams.topics import MEMORY
from tests.patience import PATIENCE_S
from tests.processors.harness import event
from thalweg.process.node import Node
from thalweg.settings import Settings

pytestmark = pytest.mark.timeout(300)

BEHIND_S = 60.0
"""In these tests, instead of the ten seconds that a machine which does something else may take for a step of them."""


class FastClock:
    """Real wall time; the monotonic clock can be put forward, so that nobody waits so long for `stuck`."""

    def __init__(self) -> None:
        self.ahead_s = 0.0

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic() + self.ahead_s


class Gate(Extract):
    """The real stage behind a gate: shut, it hangs as a model would that does not answer."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.open.set()
        self.one_at_a_time = asyncio.Semaphore(0)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        if not self.open.is_set():
            waiting = [asyncio.ensure_future(self.open.wait()), asyncio.ensure_future(self.one_at_a_time.acquire())]
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            for task in waiting:
                task.cancel()
        return await super().facts(events)


Gate.batch_size = 1


class GatedNode(Node):
    """The whole node; its first stage can be held."""

    gate: Gate

    def _stages(self, parts: StageParts) -> list[Any]:
        self.gate = Gate()
        return [self.gate, *(stage for stage in super()._stages(parts) if stage.name != "extract")]


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[GatedNode]:
    node = GatedNode(Settings(home=tmp_path / "home", embedder="hashing", partitions=2, behind_s=BEHIND_S), FastClock())
    await node.start()
    await until(node, lambda report: report["status"] == "green" and report["stages"]["extract"]["state"] == "ok")
    yield node
    node.gate.open.set()
    await node.stop()


async def until(node: Node, holds: Callable[[dict[str, Any]], bool], timeout_s: float = PATIENCE_S) -> dict[str, Any]:
    """The first report of which that holds."""
    async with asyncio.timeout(timeout_s):
        while not holds(report := (await node.control.status()).to_json()):
            await asyncio.sleep(0.02)
    return report


async def write(node: Node, *numbers: int) -> None:
    entries = [
        event("talos.journal.written", {"content": f"I realized {n}.", "category": "insight"}, id=f"e{n}")
        for n in numbers
    ]
    await node.log.publish([encode(MEMORY.name, entry) for entry in entries])


def stages_that_wait(report: Mapping[str, Any]) -> set[str]:
    return {name for name, stage in report["stages"].items() if stage["lag"]}


def wait_until_late(node: GatedNode) -> None:
    assert isinstance(node.clock, FastClock)
    node.clock.ahead_s += BEHIND_S + 1


@pytest.mark.process
async def test_a_stage_that_hangs_is_stuck_and_red_while_writes_are_applied_and_green_when_it_goes_on(
    node: GatedNode,
) -> None:
    node.gate.open.clear()
    await write(node, 1, 2, 3)
    report = await until(
        node, lambda seen: seen["topics"][MEMORY.name]["lag"] == 0 and seen["stages"]["extract"]["lag"] == 3
    )
    assert report["stages"]["extract"]["state"] == "working"
    await until(node, lambda seen: stages_that_wait(seen) == {"extract", "dedup", "consolidate"})
    wait_until_late(node)
    report = (await node.control.status()).to_json()
    assert (report["status"], report["stages"]["extract"]["state"]) == ("red", "stuck")
    [problem] = report["problems"]
    assert (
        problem.startswith("stage extract is stuck: 3 records wait, the oldest for 6")
        and "dedup" in problem.partition(";")[2]
    )
    node.gate.open.set()
    report = await until(node, lambda seen: seen["status"] == "green")
    assert report["stages"]["extract"]["lag"] == 0


async def test_a_stage_that_moves_but_does_not_keep_up_is_behind_and_red(node: GatedNode) -> None:
    node.gate.open.clear()
    await write(node, *range(10))
    await until(node, lambda seen: seen["stages"]["extract"]["lag"] == 10)
    wait_until_late(node)
    node.gate.one_at_a_time.release()
    report = await until(node, lambda seen: seen["stages"]["extract"]["lag"] < 10)
    assert (report["status"], report["stages"]["extract"]["state"]) == ("red", "behind")


@pytest.mark.parametrize("work", ["derive", "publish"])
@pytest.mark.parametrize(
    "death", [RuntimeError("out of its mind"), asyncio.CancelledError()], ids=lambda d: type(d).__name__
)
async def test_a_stage_that_is_dead_is_never_green_and_takes_the_node_with_it(
    node: GatedNode, death: BaseException, work: str
) -> None:
    ended = asyncio.ensure_future(node.wait())
    setattr(node.running.runners[0], work, dying(death))
    await write(node, 1)
    report = await until(node, lambda seen: seen["stages"]["extract"]["state"] == "dead")
    assert report["status"] == "red"
    assert any(problem.startswith("stage extract is dead") for problem in report["problems"])
    with pytest.raises(Exception, match=r"out of its mind|The stage extract was cancelled"):
        await asyncio.wait_for(ended, PATIENCE_S)


def dying(death: BaseException) -> Callable[..., Any]:
    async def die(*given: object) -> None:
        raise death

    return die
