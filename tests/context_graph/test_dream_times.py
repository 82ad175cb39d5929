"""When a dream begins and ends: beside namespaces that are called all the time, and under clocks that are wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from mcp_ingress.activity import Activity
from processors.context_graph.read.dreams import count_merges
from streams.clock import SystemClock
from tests.context_graph.sleeper import Sleeper
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings

YEARS = timedelta(days=1461)


class WrongClock(SystemClock):
    """A clock that can be put ahead."""

    ahead = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.ahead


@pytest.fixture
def clock() -> WrongClock:
    return WrongClock()


@pytest.fixture
async def dated(tmp_path: Path, clock: WrongClock) -> AsyncIterator[Sleeper]:
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="hashing", partitions=1), clock)
    await node.start()
    yield Sleeper(node)
    await node.stop()


@pytest.fixture
def called_all_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Activity, "since_call_s", lambda self: 0.0)


@pytest.mark.usefixtures("called_all_the_time")
async def test_a_dream_waits_for_quiet_and_ends_where_it_never_comes(
    sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.dreams.cycle.MOST_WAIT_S", 2.0)
    await sleeper.remember("one")
    report = await sleeper.dreamt()
    assert report["wake_reason"] == "cycle_complete"
    assert report["total_duration_ms"] >= 2000


@pytest.mark.usefixtures("called_all_the_time")
async def test_a_dream_that_waits_for_quiet_is_woken_at_once(sleeper: Sleeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.dreams.cycle.MOST_WAIT_S", 10 * SOON_S)
    await sleeper.remember("one")
    await sleeper.call("trigger_dream", force=True)
    async with asyncio.timeout(SOON_S):
        while not (await sleeper.call("get_dream_status"))["is_dreaming"]:
            await asyncio.sleep(0.05)
        await sleeper.call("abort_dream")
        while (status := await sleeper.call("get_dream_status"))["is_dreaming"]:
            await asyncio.sleep(0.05)
    assert status["last_report"]["wake_reason"] == "manual_abort"


def test_a_node_knows_when_it_was_called_last() -> None:
    now = [10.0]
    activity = Activity(lambda: now[0])
    assert activity.since_call_s() == float("inf")
    activity.note("one")
    now[0] = 10.5
    activity.note("other")
    now[0] = 11.0
    assert activity.since_call_s() == 0.5


async def test_a_dream_of_the_future_keeps_no_namespace_awake(
    dated: Sleeper, clock: WrongClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.dreams.dreamer.IDLE_LOOK_S", 0.0)
    await dated.remember("The build of the shop is green.", "the build of the shop is green")
    clock.ahead = YEARS
    dreamt = await dated.dreamt()
    wrong, merged = dreamt["started_at"], dreamt["nrem_report"]["memories_merged"]
    clock.ahead = timedelta(0)
    status = await dated.call("get_dream_status")
    assert status["last_report"]["started_at"] == wrong
    assert (status["time_since_last_dream_secs"], status["scheduler"]["cooldown_remaining_secs"]) == (0.0, 0.0)

    await dated.idle()
    assert await dated.rows("SELECT cause FROM context_dreams ORDER BY started_at") == [("idle",), ("asked",)]
    status = await dated.call("get_dream_status")
    assert status["last_report"]["started_at"] < wrong, "the last one is the last on the log"
    assert status["last_dream_completed"] < wrong
    assert status["scheduler"]["cooldown_remaining_secs"] > 0
    now = clock.now().replace(tzinfo=None)
    ahead = now + YEARS
    reader = dated.node.running.store.reader
    today, then = [
        await reader.run(lambda cursor, at=at: count_merges(cursor, "default", at - timedelta(days=1), at))
        for at in (now, ahead)
    ]
    assert (today, then) == (0, merged) == (0, 1)
