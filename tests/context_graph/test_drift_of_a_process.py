"""Drift checks of a node of its own, killed around what the timer publishes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from storage.sql.run import run_sql
from streams.codec import encode
from streams.events import Event, event_types
from streams.log import open_log
from tests.context_graph.upkeep import LAST_NIGHT, left_goal
from tests.crash.test_kills import rebuilt
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask

pytestmark = [pytest.mark.process, pytest.mark.timeout(600)]
COUNTS = "SELECT (SELECT count(*) FROM context_drift_observations), (SELECT count(*) FROM context_correction_history)"


async def publish(home: Path, events: Sequence[Event]) -> None:
    log = open_log(f"sqlite://{home / 'log.db'}")
    await log.start()
    await log.publish([encode(event_types()[event.type].topic, event) for event in events])
    await log.stop()


@pytest.mark.parametrize("nth", [1, 2])
def test_a_kill_around_what_the_timer_publishes_leaves_one_observation_of_the_hour(tmp_path: Path, nth: int) -> None:
    node = NodeProcess(tmp_path / "home", THALWEG_PARTITIONS="2", THALWEG_DREAM_WHEN_IDLE="false")
    node.start(THALWEG_OBSERVE_DRIFT="false")
    asyncio.run(publish(node.home, left_goal(datetime.now(UTC))))
    node.settle()
    assert node.sql(COUNTS) == [(0, 0)]
    assert node.stop() == 0

    node.launch(THALWEG_FAILPOINT=f"mid_timer:{nth}:kill")
    assert node.died() == -9, node.log_tail()
    node.start()
    deadline = time.monotonic() + PATIENCE_S
    while node.sql(COUNTS) != [(1, 1)]:
        assert time.monotonic() < deadline, node.sql(COUNTS)
        time.sleep(0.1)
    found = run_sql(Path(ask(node.home, "snapshot", max_age_s=0.0)["path"]), LAST_NIGHT)
    assert [row[0] for row in found.rows] == ["correction", "drift"]
    rebuilt(node)
    assert node.sql(COUNTS) == [(1, 1)]
    assert node.stop() == 0
