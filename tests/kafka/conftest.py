"""Fixtures of the Kafka tests: the session's broker, one of one's own, an open log, topics that nobody else uses."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from streams.log.kafka import KafkaLog
from streams.topics import Topic
from tests.kafka.rig.broker import Broker
from tests.kafka.rig.shared import require_rig, shared_broker

MakeTopic = Callable[..., Awaitable[Topic]]


@pytest.fixture
def rig() -> None:
    """Skips (or with THALWEG_REQUIRE_KAFKA=1 fails) where no broker can run."""
    require_rig()


@pytest.fixture
def kafka(rig: None) -> Broker:
    """The session's broker: do not stop it."""
    return shared_broker()


@pytest.fixture
def kafka_url(kafka: Broker) -> str:
    return kafka.url


@pytest.fixture
def own_broker(rig: None, tmp_path: Path) -> Iterator[Broker]:
    """A broker for this test alone, to be killed, stopped and paused."""
    broker = Broker(tmp_path / "broker")
    broker.start()
    yield broker
    broker.kill()


@pytest_asyncio.fixture
async def log(kafka: Broker) -> AsyncIterator[KafkaLog]:
    log = KafkaLog(kafka.bootstrap)
    await log.start()
    yield log
    await log.stop()


@pytest.fixture
def make_topic(log: KafkaLog) -> MakeTopic:
    """Creates a topic with a new name: `await make_topic(partitions=1)`."""

    async def make(partitions: int = 1) -> Topic:
        topic = Topic(f"t-{uuid4().hex[:12]}", "a test's records", partitions=partitions)
        await log.create_topics([topic])
        return topic

    return make
