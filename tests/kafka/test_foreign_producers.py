"""Producers that know nothing of this program: plain aiokafka, CloudEvents in binary and structured mode."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import orjson
import pytest
import pytest_asyncio
from aiokafka import AIOKafkaProducer

from streams.codec import decode
from streams.errors import Poison
from streams.events import wire_type
from streams.log import Record
from streams.log.kafka import KafkaLog
from streams.log.kafka_batches import CODECS
from streams.partitioning import partition_for
from streams.positions import Partition
from streams.topics import MEMORY, TELEMETRY
from tests.kafka.rig.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]

ENOUGH_S = 60.0
FRICTION = {"description": "The build is slow.", "category": "tooling"}


@pytest_asyncio.fixture
async def producer(kafka: Broker, log: KafkaLog) -> AsyncIterator[AIOKafkaProducer]:
    await log.create_topics([MEMORY, TELEMETRY])
    producer = AIOKafkaProducer(bootstrap_servers=kafka.bootstrap)
    await producer.start()
    yield producer
    await producer.stop()


async def read_back(log: KafkaLog, sent: object) -> Record:
    """The record at the position that the foreign producer was told."""
    at = Partition(sent.topic, sent.partition)  # type: ignore[attr-defined]
    reader = await log.reader({at: sent.offset})  # type: ignore[attr-defined]
    async with asyncio.timeout(ENOUGH_S):
        while not (records := await reader.read(timeout_s=1.0, max_records=1)):
            pass
    await reader.close()
    return records[0]


async def test_a_cloudevent_in_binary_mode_is_an_event_of_its_keys_namespace(
    log: KafkaLog, producer: AIOKafkaProducer
) -> None:
    headers = [
        ("content-type", b"application/json"),
        ("ce_specversion", b"1.0"),
        ("ce_id", b"42"),
        ("ce_source", b"urn:somebody:else"),
        ("ce_type", wire_type("talos.friction.logged").encode()),
        ("ce_time", b"2026-11-21T05:00:00Z"),
        ("ce_tenant", b"seven"),
        ("traceparent", b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
    ]
    sent = await producer.send_and_wait(MEMORY.name, orjson.dumps(FRICTION), b"team-a", headers=headers)
    assert sent.partition == partition_for(b"team-a", MEMORY.partitions)
    (logged,) = decode(await read_back(log, sent))
    assert (logged.event.namespace, logged.event.source, logged.event.id) == ("team-a", "urn:somebody:else", "42")
    assert logged.event.data == FRICTION
    assert logged.event.extensions == {
        "tenant": "seven",
        "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    }
    assert logged.position.offset == sent.offset


async def test_a_cloudevent_in_structured_mode_is_the_same_event(log: KafkaLog, producer: AIOKafkaProducer) -> None:
    body = {
        "specversion": "1.0",
        "id": "43",
        "source": "urn:somebody:else",
        "type": wire_type("talos.friction.logged"),
        "time": "2026-11-21T05:00:00Z",
        "datacontenttype": "application/json",
        "tenant": "seven",
        "data": FRICTION,
    }
    headers = [("content-type", b"application/cloudevents+json; charset=UTF-8")]
    sent = await producer.send_and_wait(MEMORY.name, orjson.dumps(body), b"team-a", headers=headers)
    (logged,) = decode(await read_back(log, sent))
    assert (logged.event.namespace, logged.event.id, logged.event.data) == ("team-a", "43", FRICTION)
    assert logged.event.extensions == {"tenant": "seven"}


async def test_a_batch_of_observations_is_one_record_and_many_events(log: KafkaLog, producer: AIOKafkaProducer) -> None:
    headers = [("ce_id", b"batch-1"), ("ce_source", b"urn:meter"), ("ce_type", wire_type("otel.metric").encode())]
    points = [{"id": f"point-{n}", "data": {"name": "load", "kind": "gauge", "value": n / 10}} for n in range(500)]
    sent = await producer.send_and_wait(TELEMETRY.name, orjson.dumps(points), b"team-b", headers=headers)
    logged = decode(await read_back(log, sent))
    assert [(event.index, event.event.id, event.event.data["value"]) for event in logged] == [
        (n, f"point-{n}", n / 10) for n in range(500)
    ]


@pytest.mark.parametrize("codec", CODECS)
async def test_a_producers_compression_is_invisible(
    log: KafkaLog, kafka: Broker, producer: AIOKafkaProducer, codec: str
) -> None:
    headers = [("ce_id", b"44"), ("ce_source", b"urn:else"), ("ce_type", wire_type("talos.friction.logged").encode())]
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap, compression_type=codec) as compressing:
        sent = await compressing.send_and_wait(MEMORY.name, orjson.dumps(FRICTION), b"team-a", headers=headers)
    (logged,) = decode(await read_back(log, sent))
    assert logged.event.data == FRICTION


async def test_a_record_with_neither_key_nor_cloudevent_is_poison_and_the_reader_goes_on(
    log: KafkaLog, producer: AIOKafkaProducer
) -> None:
    bad = await producer.send_and_wait(MEMORY.name, b"hello", partition=3)
    good = await producer.send_and_wait(MEMORY.name, b"next", partition=3)
    with pytest.raises(Poison, match="no key"):
        decode(await read_back(log, bad))
    assert (await read_back(log, good)).value == b"next"
