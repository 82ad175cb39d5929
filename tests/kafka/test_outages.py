"""What a broker that dies, hangs or stays away does to publishing and reading.

Typed errors, no loss, no help needed.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TypeVar

import pytest
import pytest_asyncio
from aiokafka import TopicPartition

from streams.errors import LogUnavailable
from streams.log import LogReader, Outgoing, Record, kafka, kafka_reader, kafka_writer
from streams.log.kafka import KafkaLog
from streams.positions import Partition, Position
from streams.topics import Topic
from tests.kafka.rig.broker import Broker, free_port
from tests.patience import within_async

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(400)]

Answer = TypeVar("Answer")
TOPIC = Topic("outages", "a test's records", partitions=2)
HEALED_S = 90.0


@pytest_asyncio.fixture
async def frail(own_broker: Broker, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KafkaLog]:
    """An open log on the test's own broker, with TOPIC and a producer that has delivered once."""
    monkeypatch.setattr(kafka, "STOP_S", 1.0)
    log = KafkaLog(own_broker.bootstrap)
    await log.start()
    await log.create_topics([TOPIC])
    await log.publish([Outgoing(TOPIC.name, b"key", b"first")], timeout_s=HEALED_S)
    yield log
    await log.stop()


async def publish(log: KafkaLog, value: bytes, timeout_s: float = 1.0) -> Position:
    (position,) = await log.publish([Outgoing(TOPIC.name, value, value)], timeout_s=timeout_s)
    return position


async def refused(log: KafkaLog, value: bytes, timeout_s: float) -> float:
    """How many seconds it takes until a write that nobody takes is refused."""
    began = time.monotonic()
    with pytest.raises(LogUnavailable) as refusal:
        await publish(log, value, timeout_s)
    assert refusal.value.extra["retry_after_ms"] > 0
    return time.monotonic() - began


async def publish_until_taken(log: KafkaLog, value: bytes) -> Position:
    """What a caller does: repeat on LogUnavailable after the pause that it names. Within HEALED_S."""
    async with asyncio.timeout(HEALED_S):
        while True:
            try:
                return await publish(log, value)
            except LogUnavailable as error:
                await asyncio.sleep(min(error.extra["retry_after_ms"], 100) / 1000)


async def answered(ask: Callable[[], Awaitable[Answer]]) -> Answer:
    """The same for a question: a broker that serves clients again may not have all its partitions yet."""
    async with asyncio.timeout(HEALED_S):
        while True:
            try:
                return await ask()
            except LogUnavailable:
                await asyncio.sleep(0.1)


async def everything(log: KafkaLog) -> dict[Position, bytes]:
    ends = await answered(lambda: log.end_offsets([TOPIC.name]))
    reader = await answered(lambda: log.reader(dict.fromkeys(ends, 0)))
    found: dict[Position, bytes] = {}
    async with asyncio.timeout(HEALED_S):
        while len(found) < sum(ends.values()):
            found.update({r.position: r.value or b"" for r in await reader.read(timeout_s=1.0, max_records=1000)})
    await reader.close()
    return found


async def test_nothing_acknowledged_is_lost_when_the_broker_is_killed_under_load(
    own_broker: Broker, frail: KafkaLog
) -> None:
    acknowledged: dict[Position, bytes] = {}
    stop = asyncio.Event()

    async def load(caller: int) -> None:
        number = 0
        while not stop.is_set():
            value = f"{caller}-{number}".encode()
            acknowledged[await publish_until_taken(frail, value)] = value
            number += 1

    async def reach(count: int) -> None:
        async with asyncio.timeout(HEALED_S):
            while len(acknowledged) < count:
                await asyncio.sleep(0.01)

    callers = [asyncio.create_task(load(caller)) for caller in range(8)]
    for _ in range(2):
        await reach(len(acknowledged) + 500)
        own_broker.kill()
        await asyncio.to_thread(own_broker.start)
    await reach(len(acknowledged) + 500)
    stop.set()
    await asyncio.gather(*callers)

    found = await everything(frail)
    assert {position: found.get(position) for position in acknowledged} == acknowledged


async def test_a_producer_that_lives_through_a_kill_writes_nothing_twice(own_broker: Broker, frail: KafkaLog) -> None:
    in_flight = [asyncio.create_task(publish(frail, str(number).encode(), HEALED_S)) for number in range(500)]
    await asyncio.wait(in_flight, return_when=asyncio.FIRST_COMPLETED)
    own_broker.kill()
    await asyncio.to_thread(own_broker.start)
    await asyncio.gather(*in_flight)
    assert max(Counter((await everything(frail)).values()).values()) == 1


async def test_publishing_to_a_dead_broker_fails_typed_within_its_timeout(own_broker: Broker, frail: KafkaLog) -> None:
    own_broker.kill()
    await within_async(0.8, lambda: refused(frail, b"into the void", 0.3))
    await within_async(1.5, lambda: refused(frail, b"into the void", 1.0))


async def test_questions_to_a_dead_broker_fail_typed_and_are_answered_once_it_is_back(
    own_broker: Broker, frail: KafkaLog
) -> None:
    own_broker.kill()
    async with asyncio.timeout(HEALED_S):
        with pytest.raises(LogUnavailable):
            await frail.end_offsets([TOPIC.name])
        with pytest.raises(LogUnavailable):
            await frail.committed("group", [TOPIC.name])
        with pytest.raises(LogUnavailable):
            await frail.reader({Partition(TOPIC.name, 0): 0})
    await asyncio.to_thread(own_broker.start)
    assert sum((await answered(lambda: frail.end_offsets([TOPIC.name]))).values()) == 1


async def test_an_outage_longer_than_the_producers_request_timeout_heals(
    own_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_writer, "REQUEST_TIMEOUT_MS", 500)
    log = KafkaLog(own_broker.bootstrap)
    await log.start()
    await log.create_topics([TOPIC])
    await publish_until_taken(log, b"before")
    own_broker.stop()
    for number in range(4):
        with pytest.raises(LogUnavailable):
            await publish(log, f"during {number}".encode(), 0.7)
    await asyncio.to_thread(own_broker.start)
    after = [await publish_until_taken(log, f"after {number}".encode()) for number in range(20)]
    found = await everything(log)
    assert [found[position] for position in after] == [f"after {number}".encode() for number in range(20)]
    await log.stop()


async def test_a_producer_whose_batch_numbers_have_a_gap_is_replaced(frail: KafkaLog) -> None:
    """A batch that failed leaves such a gap; the broker then refuses all that follows, however often it is sent."""
    poisoned = frail._writer
    assert poisoned is not None
    for partition in range(TOPIC.partitions):
        poisoned._producer._txn_manager.increment_sequence_number(TopicPartition(TOPIC.name, partition), 1)
    with pytest.raises(LogUnavailable, match="OutOfOrderSequenceNumber"):
        await frail.publish([Outgoing(TOPIC.name, b"key", b"after the gap")], timeout_s=HEALED_S)
    await frail.publish([Outgoing(TOPIC.name, b"key", b"by a new producer")], timeout_s=HEALED_S)
    assert frail._writer is not poisoned
    assert sorted((await everything(frail)).values()) == [b"by a new producer", b"first"]


async def test_a_paused_broker_fails_calls_typed_and_serves_again_when_it_goes_on(
    own_broker: Broker, frail: KafkaLog
) -> None:
    own_broker.pause()
    await within_async(1.0, lambda: refused(frail, b"while paused", 0.5))
    own_broker.resume()
    await publish_until_taken(frail, b"after the pause")
    assert b"after the pause" in (await everything(frail)).values()


async def test_a_producer_that_is_stuck_is_replaced(
    own_broker: Broker, frail: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_writer, "STUCK_S", 0.2)
    stuck = frail._writer
    assert stuck is not None
    own_broker.pause()
    async with asyncio.timeout(HEALED_S):
        while frail._writer is stuck:  # it is when its oldest record waits for longer than STUCK_S
            await refused(frail, b"while paused", 0.5)
    own_broker.resume()
    await publish_until_taken(frail, b"by a new producer")
    assert frail._writer is not stuck
    assert stuck.abandoned


async def test_what_waits_for_a_dead_broker_is_bounded_in_bytes(
    own_broker: Broker, frail: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_writer, "MAX_IN_FLIGHT_BYTES", 1_000_000)
    own_broker.kill()
    large = [frail.publish([Outgoing(TOPIC.name, str(n).encode(), bytes(200_000))], timeout_s=0.5) for n in range(50)]
    answers = await asyncio.gather(*large, return_exceptions=True)
    assert all(isinstance(answer, LogUnavailable) for answer in answers)
    assert frail._writer is not None
    assert frail._writer._bytes <= 1_000_000


async def test_an_outage_costs_neither_the_processor_nor_the_log_file(
    own_broker: Broker, frail: KafkaLog, caplog: pytest.LogCaptureFixture
) -> None:
    reader = await frail.reader({Partition(TOPIC.name, 0): 0})
    own_broker.stop()
    spent, lines = time.process_time(), len(caplog.records)
    with caplog.at_level(logging.WARNING), pytest.raises(LogUnavailable):
        await publish(frail, b"nobody takes it", 3.0)
    assert time.process_time() - spent < 1.0
    assert len(caplog.records) - lines < 30
    await reader.close()


async def next_of(reader: LogReader) -> list[Record]:
    async with asyncio.timeout(HEALED_S):
        while not (records := await reader.read(timeout_s=1.0, max_records=10)):
            pass
    return records


async def test_a_reader_goes_on_by_itself_after_a_kill(own_broker: Broker, frail: KafkaLog) -> None:
    reader = await frail.reader(dict.fromkeys(await frail.end_offsets([TOPIC.name]), 0))
    assert [record.value for record in await next_of(reader)] == [b"first"]
    own_broker.kill()
    assert await reader.read(timeout_s=0.3, max_records=10) == []
    await asyncio.to_thread(own_broker.start)
    await publish(frail, b"second", HEALED_S)  # once: what is given up and repeated may be there twice
    assert [record.value for record in await next_of(reader)] == [b"second"]
    await reader.close()


async def test_a_reader_says_so_when_the_broker_stays_away(
    own_broker: Broker, frail: KafkaLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_reader, "SILENCE_S", 4.0)
    reader = await frail.reader(dict.fromkeys(await frail.end_offsets([TOPIC.name]), 0))
    assert [record.value for record in await next_of(reader)] == [b"first"]
    quiet_until = time.monotonic() + 1.5 * kafka_reader.SILENCE_S
    while time.monotonic() < quiet_until:  # a quiet broker is not an absent one
        assert await reader.read(timeout_s=0.3, max_records=10) == []
    own_broker.kill()
    with pytest.raises(LogUnavailable, match="not answered"):
        async with asyncio.timeout(HEALED_S):
            while True:
                await reader.read(timeout_s=0.3, max_records=10)
    await reader.close()


async def start_refused(port: int, match: str | None = None) -> float:
    """How many seconds a start takes where no broker answers."""
    began = time.monotonic()
    log = KafkaLog(f"127.0.0.1:{port}")
    with pytest.raises(LogUnavailable, match=match):
        await log.start()
    took = time.monotonic() - began
    await log.stop()
    return took


async def test_starting_without_a_broker_fails_and_says_what_to_do() -> None:
    said = r"^No Kafka broker answers at 127\.0\.0\.1:\d+, [^.]*\. Start it, or choose another with [^.]*\.$"
    await within_async(10.0, lambda: start_refused(free_port(), said))


async def test_starting_on_a_port_that_never_answers_fails_within_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert kafka.START_S < 10.0
    monkeypatch.setattr(kafka, "START_S", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        await within_async(9.0, lambda: start_refused(silent.getsockname()[1]))
