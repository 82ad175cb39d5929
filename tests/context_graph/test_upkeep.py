"""Dreams, consolidation and drift checks run by themselves, and each can be switched off."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from rich.console import Console

from streams.codec import encode
from streams.events import event_types
from streams.positions import Freshness
from tests.context_graph.sleeper import Sleeper
from tests.context_graph.upkeep import LAST_NIGHT, left_goal
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings
from thalweg.terminal.show import show_dreams

JOBS = {"dream_when_idle": "dream", "merge_in_dreams": "consolidation", "observe_drift": "drift"}


async def started(home: Path, **switches: bool) -> Sleeper:
    node = Node(Settings(home=home, embedder="hashing", partitions=1, **switches))
    await node.start()
    return Sleeper(node)


@pytest.fixture
async def filled(tmp_path: Path) -> Path:
    """A home whose memories wait for their upkeep."""
    home = migrated_home(tmp_path / "home")
    sleeper = await started(home, dream_when_idle=False, observe_drift=False)
    node = sleeper.node
    records = [encode(event_types()[event.type].topic, event) for event in left_goal(node.clock.now())]
    token = Freshness.after(await node.log.publish(records))
    assert await node.running.store.applied.wait(token, timeout_s=SOON_S, stages=("embed", "relate"))
    await node.stop()
    return home


@pytest.mark.parametrize("off", [None, *JOBS])
async def test_each_job_can_be_switched_off_and_one_query_says_what_they_changed(
    filled: Path, off: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.dreams.dreamer.IDLE_LOOK_S", 0.0)
    sleeper = await started(filled, **dict.fromkeys(JOBS, True) | ({} if off is None else {off: False}))
    expected = {job for setting, job in JOBS.items() if setting != off}
    if off == "dream_when_idle":
        expected -= {"consolidation"}  # it is a dream that merges
    if off != "observe_drift":
        expected |= {"correction"}
        async with asyncio.timeout(SOON_S):
            while not await sleeper.rows("SELECT 1 FROM context_drift_observations"):
                await asyncio.sleep(0.02)
    await sleeper.idle(dreams=off != "dream_when_idle")
    assert {row[0] for row in await sleeper.rows(LAST_NIGHT)} == expected

    status = (await sleeper.node.control.status()).to_json()["dreams"]
    shown = Console(record=True, width=120)
    show_dreams(shown, status)
    told = [line for line in shown.export_text().splitlines() if line.startswith("switched off")]
    assert told == ([] if off is None else [f"switched off: {off}"])
    await sleeper.node.stop()
