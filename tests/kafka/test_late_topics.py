"""A group that is formed while its broker does not know the topics yet.

A broker that has just come back answers a group before it says of each topic who leads it. Faust's assignor then gives
nobody anything, and Kafka asks for no other assignment: the members have to see by themselves that there are topics.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import pytest

from processors.frame import faust_app
from processors.frame.stage import Derived, Stage, StageRunner
from streams.clock import SystemClock
from streams.events import Event, LoggedEvent
from streams.log import Outgoing
from streams.log.base import Record
from streams.log.kafka import KafkaLog
from streams.topics import Topic
from tests.kafka.rig.broker import Broker
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(200)]


class CountingRunner(StageRunner):
    """Derives nothing of what it reads."""

    async def derive(self, records: Sequence[Record]) -> Derived:
        return Derived()


async def test_stages_that_join_before_their_topic_is_there_read_it_soon_after(
    kafka: Broker, log: KafkaLog, tmp_path: Path
) -> None:
    name = f"late-{uuid4().hex[:12]}"

    class Late(Stage):
        source = Topic(name, "a test's records", partitions=4)
        accepts = frozenset()

        async def facts(self, events: Sequence[LoggedEvent]) -> list[list[Event]]:
            return [[] for _ in events]

    Late.name = name
    runner = CountingRunner(Late(), log, SystemClock())
    app = faust_app.make_app(kafka.url, [runner], directory=tmp_path, group=name)
    async with faust_app.faust_app_running(app):
        await log.create_topics([Late.source])
        await log.publish([Outgoing(name, b"key", b"a record")], timeout_s=PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            while not runner.processed:
                await asyncio.sleep(0.05)
