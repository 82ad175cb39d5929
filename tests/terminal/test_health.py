"""What `status` sees over time, on each log: how long the oldest record waits, and which part is the cause."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from processors.memory.stages.embed import Embed
from processors.talos.stages.dedup import Dedup
from processors.talos.stages.extract import Extract
from processors.talos.stages.patterns import Patterns
from storage.applied import AppliedPositions
from streams.backlog import Backlog
from streams.log import Log, Outgoing, open_log
from streams.positions import Partition
from streams.topics import MEMORY, Topic
from tests.kafka.rig.shared import require_rig, shared_broker
from thalweg.status.health import Health, Watch

BEHIND_S = 10.0


@pytest_asyncio.fixture(params=["sqlite", pytest.param("kafka", marks=[pytest.mark.kafka, pytest.mark.timeout(300)])])
async def log(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Log]:
    if request.param == "kafka":
        require_rig()
    log = open_log(shared_broker().url if request.param == "kafka" else f"sqlite://{tmp_path}/log.db")
    await log.start()
    yield log
    await log.stop()


class Seen:
    """Health over a real log, with a clock and applied positions of the test."""

    def __init__(self, log: Log, *topics: Topic, stages: tuple[Any, ...] = ()) -> None:
        self.log, self.now, self.applied = log, 0.0, AppliedPositions()
        clock = SimpleNamespace(monotonic=lambda: self.now)
        node: Any = SimpleNamespace(
            log=log,
            followed=[topic.name for topic in topics],
            applied=self.applied,
            runners=[],
            elsewhere=list(stages),
            clock=clock,
        )
        self.health = Health(node)

    async def after(self, seconds: float) -> dict[str, str]:
        """The state of each topic and stage that long afterwards."""
        self.now += seconds
        await self.health.observe()
        return {name: report["state"] for name, report in self.reports().items()}

    def reports(self) -> dict[str, dict[str, Any]]:
        watches = {**self.health._topics, **self.health._stages}
        return {name: watch.report(self.now, BEHIND_S) for name, watch in watches.items()}

    def causes(self) -> list[str]:
        found = [
            {name: watch.report(self.now, BEHIND_S) for name, watch in of.items()}
            for of in (self.health._topics, self.health._stages)
        ]
        return [*self.health._causes(*found).values()]


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
    stages = [type(stage.__name__, (stage,), {"source": topic}) for stage in (Extract, Embed, Dedup, Patterns)]
    stages[2].follows = None  # type: ignore[attr-defined]  # its source is the topic here, and not the memories
    seen = Seen(log, topic, stages=tuple(stages))
    await write(log, topic, 7)
    seen.applied.advance({Partition(topic.name, 0): 7}, {("extract", Partition(topic.name, 0)): 7})
    await seen.after(0)
    states = await seen.after(BEHIND_S + 2)
    assert states == {topic.name: "ok", "extract": "ok", "embed": "stuck", "dedup": "stuck", "patterns": "stuck"}
    [cause] = seen.causes()
    assert (
        cause
        == "stage embed is stuck: 7 records wait, the oldest for 12 s; dedup, patterns wait for what it finds; another node has to run it"
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
