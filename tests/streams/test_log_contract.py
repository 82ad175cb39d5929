"""What every log promises, checked on each implementation: the embedded SQLite file and a real Kafka."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
import pytest_asyncio

from streams.errors import LogUnavailable, RecordRefused, SettingsError
from streams.log import Log, LogReader, Outgoing, Record, kafka, open_log
from streams.log.base import MAX_RECORD_BYTES
from streams.partitioning import partition_for
from streams.positions import Partition, Position
from streams.topics import INVOCATIONS, TELEMETRY, Topic
from tests.kafka.rig.shared import require_rig, shared_broker
from tests.patience import within_async

pytestmark = pytest.mark.timeout(300)

ENOUGH_S = 90.0


@pytest.fixture(params=["sqlite", pytest.param("kafka", marks=pytest.mark.kafka)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite://{tmp_path}/log.db"
    require_rig()
    return shared_broker().url


@pytest_asyncio.fixture
async def log(url: str) -> AsyncIterator[Log]:
    log = open_log(url)
    await log.start()
    yield log
    await log.stop()


@pytest_asyncio.fixture
async def topic(log: Log) -> Topic:
    topic = a_topic()
    await log.create_topics([topic])
    return topic


def a_topic(partitions: int = 3) -> Topic:
    return Topic(f"contract-{uuid4().hex[:12]}", "a test's records", partitions=partitions)


def partitions_of(topic: Topic) -> list[Partition]:
    return [Partition(topic.name, number) for number in range(topic.partitions)]


async def read(reader: LogReader, count: int) -> list[Record]:
    """The next `count` records, within ENOUGH_S."""
    records: list[Record] = []
    async with asyncio.timeout(ENOUGH_S):
        while len(records) < count:
            records += await reader.read(timeout_s=1.0, max_records=count - len(records) + 100)
    return records


async def read_all(log: Log, topic: Topic, count: int) -> list[Record]:
    reader = await log.reader(dict.fromkeys(partitions_of(topic), 0))
    try:
        return await read(reader, count)
    finally:
        await reader.close()


# --- topics


async def test_create_topics_names_what_it_created_and_nothing_the_second_time(log: Log) -> None:
    one, two = a_topic(), a_topic(partitions=1)
    assert sorted(await log.create_topics([one, two])) == sorted([one.name, two.name])
    assert await log.create_topics([one, two]) == []
    assert set(await log.end_offsets([one.name, two.name])) == {*partitions_of(one), *partitions_of(two)}


async def test_create_topics_refuses_another_number_of_partitions_and_says_what_to_do(log: Log, topic: Topic) -> None:
    with pytest.raises(SettingsError, match=r"has 3 partitions, not 5.*partitions = 3"):
        await log.create_topics([Topic(topic.name, topic.carries, partitions=5)])


async def test_publishing_to_a_topic_that_does_not_exist_is_refused_at_once(log: Log) -> None:
    with pytest.raises(SettingsError, match="does not exist"):
        await log.publish([Outgoing("no-such-topic", b"key", b"value")])


async def test_publishing_to_a_partition_that_does_not_exist_is_refused(log: Log, topic: Topic) -> None:
    with pytest.raises(SettingsError, match="no partition 7"):
        await log.publish([Outgoing(topic.name, b"key", b"value", partition=7)], timeout_s=ENOUGH_S)


# --- publishing


async def test_positions_of_one_publish_follow_its_order_and_have_no_holes(log: Log, topic: Topic) -> None:
    positions = await log.publish(
        [Outgoing(topic.name, b"key", str(number).encode(), partition=number % 2) for number in range(200)],
        timeout_s=ENOUGH_S,
    )
    assert positions == [Position(topic.name, number % 2, number // 2) for number in range(200)]
    records = await read_all(log, topic, 200)
    by_position = {record.position: record.value for record in records}
    assert [by_position[position] for position in positions] == [str(number).encode() for number in range(200)]


async def test_publishing_nothing_answers_nothing(log: Log) -> None:
    assert await log.publish([], timeout_s=ENOUGH_S) == []


async def test_keys_values_and_headers_come_back_as_they_went(log: Log, topic: Topic) -> None:
    sent = [
        Outgoing(topic.name, b"key", b"value", (("a", b"1"), ("b", b"\xff\x00"), ("a", b"2"), ("empty", b""))),
        Outgoing(topic.name, b"", b""),
        Outgoing(topic.name, None, b"without a key"),
        Outgoing(topic.name, b"without a value", None),
        Outgoing(topic.name, None, None, (("neither", "\N{SNOWMAN}".encode()),)),
        Outgoing(topic.name, bytes(range(256)), bytes(range(256))),
    ]
    positions = await log.publish(sent, timeout_s=ENOUGH_S)
    records = {record.position: record for record in await read_all(log, topic, len(sent))}
    back = [records[position] for position in positions]
    assert [(record.key, record.value, record.headers) for record in back] == [
        (out.key, out.value, out.headers) for out in sent
    ]


async def test_a_record_carries_the_time_at_which_it_was_published(log: Log, topic: Topic) -> None:
    before = time.time_ns() // 1_000_000
    await log.publish([Outgoing(topic.name, b"key", b"value")], timeout_s=ENOUGH_S)
    (record,) = await read_all(log, topic, 1)
    assert before - 1 <= record.timestamp_ms <= time.time_ns() // 1_000_000 + 1


async def test_the_key_chooses_the_partition_as_kafka_does(log: Log, topic: Topic) -> None:
    keys = [f"namespace-{number}".encode() for number in range(50)] + [b"", "ü".encode()]
    positions = await log.publish([Outgoing(topic.name, key, b"value") for key in keys], timeout_s=ENOUGH_S)
    assert [position.partition for position in positions] == [partition_for(key, topic.partitions) for key in keys]


async def test_a_named_partition_goes_before_the_key(log: Log, topic: Topic) -> None:
    positions = await log.publish(
        [Outgoing(topic.name, b"key", b"value", partition=number) for number in range(3)], timeout_s=ENOUGH_S
    )
    assert [position.partition for position in positions] == [0, 1, 2]


async def test_a_thousand_concurrent_publishes_each_get_a_position_of_their_own(log: Log, topic: Topic) -> None:
    async def publish(number: int) -> tuple[Position, bytes]:
        value = str(number).encode()
        (position,) = await log.publish([Outgoing(topic.name, value, value)], timeout_s=ENOUGH_S)
        return position, value

    answered = dict(await asyncio.gather(*(publish(number) for number in range(1000))))
    assert len(answered) == 1000
    records = await read_all(log, topic, 1000)
    assert {record.position: record.value for record in records} == answered
    ends = await log.end_offsets([topic.name])
    assert sum(ends.values()) == 1000


async def test_a_record_of_five_megabytes_passes_unharmed(log: Log, topic: Topic) -> None:
    large = bytes(range(256)) * (5 * 4096)
    await log.publish(
        [Outgoing(topic.name, b"key", large), Outgoing(topic.name, b"key", b"after it")], timeout_s=ENOUGH_S
    )
    records = await read_all(log, topic, 2)
    assert [record.value for record in records] == [large, b"after it"]


async def test_what_no_topic_takes_is_refused_before_anything_of_the_call_is_written(log: Log, topic: Topic) -> None:
    small, large = Outgoing(topic.name, b"k", b"small"), Outgoing(topic.name, b"k", b"x" * MAX_RECORD_BYTES)
    with pytest.raises(RecordRefused, match=r"takes at most \d+\. Send it in parts") as refused:
        await log.publish([small, large])
    with pytest.raises(RecordRefused) as checked:
        log.check([small, large])
    assert checked.value.message == refused.value.message
    log.check([small])
    assert set((await log.end_offsets([topic.name])).values()) == {0}
    assert log.largest(topic.name) <= MAX_RECORD_BYTES


async def test_what_was_answered_is_there_for_another_log_on_the_same_broker(log: Log, url: str, topic: Topic) -> None:
    await log.publish([Outgoing(topic.name, b"key", b"value")], timeout_s=ENOUGH_S)
    other = open_log(url)
    await other.start()
    try:
        assert [record.value for record in await read_all(other, topic, 1)] == [b"value"]
        await other.publish([Outgoing(topic.name, b"key", b"from the other")], timeout_s=ENOUGH_S)
    finally:
        await other.stop()
    assert [record.value for record in await read_all(log, topic, 2)] == [b"value", b"from the other"]


# --- reading


async def test_a_reader_starts_at_the_offset_it_was_given(log: Log, topic: Topic) -> None:
    await log.publish(
        [Outgoing(topic.name, b"key", str(number).encode(), partition=1) for number in range(10)], timeout_s=ENOUGH_S
    )
    reader = await log.reader({Partition(topic.name, 1): 7})
    records = await read(reader, 3)
    await reader.close()
    assert [(record.offset, record.value) for record in records] == [(7, b"7"), (8, b"8"), (9, b"9")]


async def test_a_reader_sees_only_the_partitions_it_was_given(log: Log, topic: Topic) -> None:
    await log.publish(
        [Outgoing(topic.name, b"key", b"value", partition=number) for number in range(3)], timeout_s=ENOUGH_S
    )
    reader = await log.reader({Partition(topic.name, 0): 0, Partition(topic.name, 2): 0})
    records = await read(reader, 2)
    assert await reader.read(timeout_s=0.2, max_records=10) == []
    await reader.close()
    assert {record.partition for record in records} == {0, 2}


async def test_a_reader_keeps_the_order_of_each_partition(log: Log, topic: Topic) -> None:
    await log.publish(
        [Outgoing(topic.name, b"key", str(number).encode(), partition=number % 3) for number in range(3000)],
        timeout_s=ENOUGH_S,
    )
    records = await read_all(log, topic, 3000)
    for number in range(3):
        assert [record.offset for record in records if record.partition == number] == list(range(1000))


async def test_reading_never_returns_more_than_was_asked_for(log: Log, topic: Topic) -> None:
    await log.publish([Outgoing(topic.name, b"key", b"value", partition=0) for _ in range(100)], timeout_s=ENOUGH_S)
    reader = await log.reader({Partition(topic.name, 0): 0})
    seen = 0
    async with asyncio.timeout(ENOUGH_S):
        while seen < 100:
            records = await reader.read(timeout_s=1.0, max_records=7)
            assert len(records) <= 7
            seen += len(records)
    await reader.close()


async def test_a_reader_at_the_end_waits_for_its_timeout_and_returns_nothing(log: Log, topic: Topic) -> None:
    reader = await log.reader(dict.fromkeys(partitions_of(topic), 0))
    await reader.read(timeout_s=0.1, max_records=10)

    async def waited() -> float:
        began = time.monotonic()
        assert await reader.read(timeout_s=0.3, max_records=10) == []
        took = time.monotonic() - began
        assert took >= 0.25
        return took

    await within_async(2.0, waited)
    await reader.close()


async def test_a_waiting_reader_sees_what_is_published_later(log: Log, topic: Topic) -> None:
    reader = await log.reader(dict.fromkeys(partitions_of(topic), 0))
    await reader.read(timeout_s=0.1, max_records=10)
    waiting = asyncio.create_task(read(reader, 1))
    await log.publish([Outgoing(topic.name, b"key", b"late")], timeout_s=ENOUGH_S)
    assert [record.value for record in await waiting] == [b"late"]
    await log.publish([Outgoing(topic.name, b"other key", b"later")], timeout_s=ENOUGH_S)
    assert [record.value for record in await read(reader, 1)] == [b"later"]
    await reader.close()


async def test_a_read_that_is_cancelled_just_as_something_arrives_elsewhere_ends_at_once(
    log: Log, topic: Topic
) -> None:
    reader = await log.reader({Partition(topic.name, 0): 0})
    for turns in range(6):
        reading = asyncio.create_task(reader.read(timeout_s=10 * ENOUGH_S, max_records=10))
        await asyncio.sleep(0.01)
        await log.publish([Outgoing(topic.name, b"k", b"elsewhere", (), 1)], timeout_s=ENOUGH_S)
        for _ in range(turns):
            await asyncio.sleep(0)
        reading.cancel()
        done, _ = await asyncio.wait([reading], timeout=30)
        assert done, "the cancellation was forgotten"
    await reader.close()


async def test_two_readers_do_not_take_from_each_other(log: Log, topic: Topic) -> None:
    await log.publish(
        [Outgoing(topic.name, str(number).encode(), b"value") for number in range(20)], timeout_s=ENOUGH_S
    )
    first, second = await asyncio.gather(read_all(log, topic, 20), read_all(log, topic, 20))
    assert {record.position for record in first} == {record.position for record in second}


async def test_closing_a_reader_twice_is_harmless(log: Log, topic: Topic) -> None:
    reader = await log.reader({Partition(topic.name, 0): 0})
    await reader.close()
    await reader.close()


# --- offsets


async def test_end_offsets_are_the_next_to_be_written_and_first_offsets_the_oldest_kept(log: Log, topic: Topic) -> None:
    assert set((await log.end_offsets([topic.name])).values()) == {0}
    await log.publish([Outgoing(topic.name, b"key", b"value", partition=1) for _ in range(4)], timeout_s=ENOUGH_S)
    assert await log.end_offsets([topic.name]) == {
        Partition(topic.name, 0): 0,
        Partition(topic.name, 1): 4,
        Partition(topic.name, 2): 0,
    }
    assert await log.first_offsets([topic.name]) == dict.fromkeys(partitions_of(topic), 0)


async def test_offsets_leave_out_topics_that_do_not_exist(log: Log, topic: Topic) -> None:
    assert set(await log.end_offsets([topic.name, "no-such-topic"])) == set(partitions_of(topic))
    assert await log.first_offsets(["no-such-topic"]) == {}


async def test_a_group_that_never_committed_has_no_offsets(log: Log, topic: Topic) -> None:
    assert await log.committed(f"group-{uuid4().hex}", [topic.name]) == {}


# --- start and stop


async def test_starting_and_stopping_twice_is_harmless(url: str) -> None:
    log = open_log(url)
    await log.start()
    await log.start()
    await log.stop()
    await log.stop()


async def test_a_stopped_log_takes_nothing(log: Log, topic: Topic) -> None:
    await log.stop()
    with pytest.raises(LogUnavailable, match="not open"):
        await log.publish([Outgoing(topic.name, b"key", b"value")], timeout_s=ENOUGH_S)


async def test_what_was_in_flight_when_the_log_stops_is_either_answered_and_there_or_refused(
    log: Log, url: str, topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "STOP_S", ENOUGH_S)
    in_flight = [
        asyncio.create_task(log.publish([Outgoing(topic.name, b"key", str(number).encode())], timeout_s=ENOUGH_S))
        for number in range(200)
    ]
    await log.publish([Outgoing(topic.name, b"key", b"the last one that is waited for")], timeout_s=ENOUGH_S)
    in_flight += [
        asyncio.create_task(log.publish([Outgoing(topic.name, b"key", str(number).encode())], timeout_s=ENOUGH_S))
        for number in range(200, 400)
    ]
    answers = await asyncio.gather(*in_flight, log.stop(), return_exceptions=True)
    answered = {number for number, answer in enumerate(answers[:-1]) if isinstance(answer, list)}
    assert all(isinstance(answer, list | LogUnavailable) for answer in answers[:-1])
    assert answered >= set(range(200))
    other = open_log(url)
    await other.start()
    try:
        ends = await other.end_offsets([topic.name])
        records = await read_all(other, topic, sum(ends.values()))
    finally:
        await other.stop()
    assert {str(number).encode() for number in answered} <= {record.value for record in records}


async def test_what_no_caller_waits_for_is_read_beside_the_rest(log: Log) -> None:
    topics = [TELEMETRY, INVOCATIONS]
    await log.create_topics(topics)
    reader = await log.reader(await log.end_offsets([topic.name for topic in topics]))
    try:
        await log.publish([Outgoing(topic.name, b"north", b"1") for topic in topics], timeout_s=ENOUGH_S)
        await log.publish([Outgoing(topic.name, b"north", b"2") for topic in topics], timeout_s=ENOUGH_S)
        found = await read(reader, 4)
    finally:
        await reader.close()
    for topic in topics:
        assert [record.value for record in found if record.topic == topic.name] == [b"1", b"2"]
