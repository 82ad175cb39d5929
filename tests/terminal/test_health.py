"""What `status` sees over time, on each log: how long the oldest record waits, and which part is the cause."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from processors.frame.stage import Stage
from processors.memory.stages.embed import Embed
from processors.talos.stages.dedup import Dedup
from processors.talos.stages.extract import Extract
from processors.talos.stages.patterns import Patterns
from storage.applied import AppliedPositions
from streams.backlog import Backlog
from streams.clock import SystemClock
from streams.log import Log, Outgoing, open_log
from streams.positions import Partition
from streams.topics import MEMORY, Topic
from tests.kafka.rig.shared import require_rig, shared_broker
from thalweg.status.lag import Lag, Watch

BEHIND_S = 10.0


@pytest_asyncio.fixture(params=["sqlite", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.timeout(300)])])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    if request.param == "kafka":
        require_rig()
    log = open_log(shared_broker().url if request.param == "kafka" else f"sqlite://{tmp_path}/log.db")
    await log.start()
    yield log
    await log.stop()


class SetClock(SystemClock):
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


class Seen:
    """The lag seen on a real log, with a clock and applied positions of the test."""

    def __init__(self, log: Log, *topics: Topic, stages: tuple[type[Stage], ...] = ()) -> None:
        self.clock, self.applied = SetClock(), AppliedPositions()
        self.lag = Lag(log, self.applied, self.clock, [topic.name for topic in topics], elsewhere=stages)

    async def after(self, seconds: float) -> dict[str, str]:
        """The state of each topic and stage that long afterwards."""
        self.clock.seconds += seconds
        await self.lag.observe()
        return {name: report["state"] for name, report in self.reports().items()}

    def reports(self) -> dict[str, dict[str, Any]]:
        return self.lag.topics(BEHIND_S) | self.lag.stages(BEHIND_S)

    def causes(self) -> list[str]:
        return [*self.lag.causes(self.lag.topics(BEHIND_S), self.lag.stages(BEHIND_S)).values()]


async def a_topic(log: Log, like: Topic = MEMORY) -> Topic:
    topic = replace(like, name=f"health-{uuid4().hex[:12]}", partitions=1)
    await log.create_topics([topic])
    return topic


async def write(log: Log, topic: Topic, count: int = 1) -> None:
    await log.publish([Outgoing(topic.name, b"k", b"{}", (), 0)] * count)


async def test_a_topic_that_is_not_applied_is_seen_as_stuck_and_as_ok_once_it_is(log: Log) -> None:
    topic = await a_topic(log)
    await write(log, topic)
    seen = Seen(log, topic)
    assert await seen.after(0) == {topic.name: "working"}
    assert await seen.after(BEHIND_S - 0.1) == {topic.name: "working"}
    assert await seen.after(0.1) == {topic.name: "stuck"}
    assert seen.causes() == [f"the materialiser is stuck: 1 record waits, the oldest for 10 s on {topic.name}"]
    seen.applied.advance({Partition(topic.name, 0): 1}, {})
    assert await seen.after(1) == {topic.name: "ok"} and seen.causes() == []


async def test_a_log_that_never_rests_is_not_behind_while_no_record_waits_long(log: Log) -> None:
    topic = await a_topic(log)
    seen = Seen(log, topic)
    for second in range(1, 41):
        await write(log, topic, 3)
        assert await seen.after(1) == {topic.name: "working"}
        assert seen.reports()[topic.name]["lag"] == 3 and seen.reports()[topic.name]["oldest_s"] <= 1
        seen.applied.advance({Partition(topic.name, 0): 3 * second}, {})
    assert seen.causes() == []


async def test_of_what_waits_for_one_stage_only_that_stage_is_named(log: Log) -> None:
    topic = await a_topic(log)
    of_topic = {"source": topic, "follows": None}  # each reads the topic here, and not the memories
    stages = [type(stage.__name__, (stage,), of_topic) for stage in (Extract, Embed, Dedup, Patterns)]
    seen = Seen(log, topic, stages=tuple(stages))
    await write(log, topic, 7)
    seen.applied.advance({Partition(topic.name, 0): 7}, {("extract", Partition(topic.name, 0)): 7})
    await seen.after(0)
    states = await seen.after(BEHIND_S + 2)
    assert states == {topic.name: "ok", "extract": "ok", "embed": "stuck", "dedup": "stuck", "patterns": "stuck"}
    [cause] = seen.causes()
    assert (
        cause == "stage embed is stuck: 7 records wait, the oldest for 12 s; dedup, patterns wait for what it finds; "
        "another node has to run it"
    )


async def test_a_materialiser_that_is_behind_is_the_cause_and_no_stage_is_accused(log: Log) -> None:
    topic = await a_topic(log)
    stage = type("Extract", (Extract,), {"source": topic})
    seen = Seen(log, topic, stages=(stage,))
    await write(log, topic, 5)
    await seen.after(0)
    seen.applied.advance({Partition(topic.name, 0): 2}, {})
    assert await seen.after(BEHIND_S) == {topic.name: "behind", "extract": "stuck"}
    assert seen.causes() == [f"the materialiser is behind: 3 records wait, the oldest for 10 s on {topic.name}"]


def test_what_waits_too_long_is_behind_while_the_part_moves_and_stuck_when_it_does_not() -> None:
    watch = Watch(0.0)
    for second in range(30):
        watch.observe(float(second), min(second, 15), Backlog(100, float(second)))
        if second == 9:
            assert watch.state(9.0, BEHIND_S) == "working"
    assert [watch.state(now, BEHIND_S) for now in (24.9, 25.0)] == ["behind", "stuck"]
