"""The log on Kafka: acknowledged by all in-sync replicas, read without a consumer group, topics made by the admin client.

docs/kafka.md says what is set and why. A call fails typed within its own deadline; what the broker does meanwhile is
the business of `streams.log.kafka_writer`.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, for_code

from streams.errors import LogUnavailable, SettingsError, StoreError
from streams.log import backoff, kafka_batches
from streams.log.base import MAX_RECORD_BYTES, UNREADABLE, Log, LogReader, Outgoing, Record
from streams.log.kafka_limits import RETRY_AFTER_MS, judge, read_limits
from streams.log.kafka_probe import why_refused
from streams.log.kafka_security import KafkaSecurity
from streams.log.kafka_writer import BoundedProducer, settle
from streams.log.merged_reader import MergedReader
from streams.partitioning import partition_for
from streams.positions import Partition, Position
from streams.topics import DLQ_SUFFIX, PREFIX, UNAWAITED, Topic

logger = logging.getLogger(__name__)

START_S = 8.0
QUERY_S = 5.0
STOP_S = 5.0
FETCH_WAIT_MS = 50
"""A fetch names the partitions that nothing waits in; until it ends, no other is asked for. What a quiet partition may hold up a busy one."""
SELDOM_WAIT_MS = 500
SELDOM_BYTES = 64 * 1024
"""What no caller waits for is fetched when so much lies there, or twice a second: most partitions, and each costs in every fetch."""
AWAY_S = 60.0
MAX_MESSAGE_BYTES = 9 * 1024 * 1024
TOPIC_EXISTS = 36
INVALID_REPLICATION = 38
ABSENT = (KafkaError, OSError, TimeoutError, asyncio.TimeoutError)


class KafkaLog(Log):
    """The log on the brokers of `bootstrap` (`host:port[,host:port]`)."""

    def __init__(self, bootstrap: str, security: KafkaSecurity | None = None) -> None:
        self.bootstrap = bootstrap
        self.security = security or KafkaSecurity()
        self._counts: dict[str, int] = {}
        self._largest: dict[str, int] = {}
        self._writer: BoundedProducer | None = None
        self._opening = asyncio.Lock()
        self._leaving: set[asyncio.Task[None]] = set()
        self._queries: tuple[AIOKafkaAdminClient, AIOKafkaConsumer] | None = None
        self._started = False

    def _options(self) -> dict[str, Any]:
        return {"bootstrap_servers": self.bootstrap, "client_id": "thalweg", **self.security.options()}

    async def start(self) -> None:
        if self._started:
            return
        backoff.install()
        kafka_batches.install()
        try:
            with _silent_client():
                async with asyncio.timeout(START_S):
                    await self._connect()
                    await self._learn()
        except ABSENT as error:
            await self._disconnect()
            with _silent_client():
                reason = await why_refused(self.bootstrap, self.security)
            if reason is not None:
                raise SettingsError(reason) from None
            raise LogUnavailable(
                f"No Kafka broker answers at {self.bootstrap}, or it does not accept this connection's security settings "
                f"(THALWEG_KAFKA_PROTOCOL is {self.security.protocol}). Start it, or choose another with --broker or THALWEG_BROKER.",
                retry_after_ms=RETRY_AFTER_MS,
            ) from error
        self._started = True

    async def stop(self) -> None:
        self._started = False
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close(STOP_S)
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=STOP_S)
        await self._disconnect()

    # --- topics

    async def create_topics(self, topics: Iterable[Topic]) -> list[str]:
        wanted = list(topics)
        async with self._asking() as (admin, _):
            await self._learn()
            missing = [topic for topic in wanted if topic.name not in self._counts]
            created = await self._create(admin, missing) if missing else []
        for topic in wanted:
            existing = self._counts[topic.name]
            if existing != topic.partitions:
                raise SettingsError(
                    f"The topic {topic.name} has {existing} partitions, not {topic.partitions}; the number is chosen once. "
                    f"Set `partitions = {existing}`, or use another broker, or delete the topic and all it holds."
                )
        return created

    async def _create(self, admin: AIOKafkaAdminClient, missing: Sequence[Topic]) -> list[str]:
        # An empty assignment beside -1 lets the broker choose its default.replication.factor.
        new = [
            NewTopic(topic.name, topic.partitions, -1, replica_assignments={}, topic_configs=_configs(topic))
            for topic in missing
        ]
        created: list[str] = []
        while _are_fenced(answer := await admin.create_topics(new, timeout_ms=int(QUERY_S * 1000))):
            created += [name for name, code, *_ in answer.topic_errors if code == 0]
            await asyncio.sleep(0.1)
        for name, code, *reason in answer.topic_errors:
            if code == 0:
                created.append(name)
            elif code != TOPIC_EXISTS:  # another process was quicker
                why = (reason[0] if reason else None) or for_code(code).__name__
                raise SettingsError(f"The broker does not create the topic {name}: {why}")
        while not await self._learn(ready=[topic.name for topic in missing]):
            await asyncio.sleep(0.05)
        return created

    async def _learn(self, ready: Iterable[str] = ()) -> bool:
        """Read the partition counts of all topics, and what ours take; whether all of `ready` have leaders. (By name a broker might create them.)"""
        assert self._queries is not None
        described = {
            topic["topic"]: topic for topic in await self._queries[0].describe_topics() if topic["error_code"] == 0
        }
        self._counts = {name: len(topic["partitions"]) for name, topic in described.items()}
        self._largest |= await read_limits(self._queries[0], [name for name in described if name.startswith(PREFIX)])
        return all(name in described and all(p["leader"] >= 0 for p in described[name]["partitions"]) for name in ready)

    async def _partitions(self, topics: Iterable[str]) -> list[Partition]:
        names = sorted(set(topics))
        if any(name not in self._counts for name in names):
            await self._learn()
        return [Partition(name, number) for name in names for number in range(self._counts.get(name, 0))]

    # --- writing

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        self._check_open()
        self.check(records)
        writer = None
        try:
            async with asyncio.timeout(timeout_s):
                placed = [(record, await self._place(record)) for record in records]
                writer = await self._ready_writer()
                offsets = await writer.append(placed)
        except TimeoutError:
            if writer is not None and writer.stuck:
                self._abandon(writer)
            raise LogUnavailable(
                f"Kafka did not acknowledge within {timeout_s:g} s.", retry_after_ms=RETRY_AFTER_MS
            ) from None
        except KafkaError as error:
            if writer is not None:
                self._abandon(writer)
            raise judge(error) from error
        if any(offset < 0 for offset in offsets):
            raise LogUnavailable(
                "Kafka had the records already and no longer knows where; repeat the call.", retry_after_ms=0
            )
        return [
            Position(record.topic, partition, offset)
            for (record, partition), offset in zip(placed, offsets, strict=True)
        ]

    def largest(self, topic: str) -> int:
        return self._largest.get(topic, MAX_RECORD_BYTES)

    async def _place(self, record: Outgoing) -> int:
        if record.topic not in self._counts:
            async with self._asking():
                await self._learn()
        count = self._counts.get(record.topic, 0)
        if count == 0:
            raise SettingsError(f"The topic {record.topic} does not exist; `thalweg topics create` makes the topics.")
        partition = record.partition if record.partition is not None else partition_for(record.key or b"", count)
        if not 0 <= partition < count:
            raise SettingsError(f"The topic {record.topic} has no partition {partition}.")
        return partition

    async def _ready_writer(self) -> BoundedProducer:
        async with self._opening:
            if self._writer is None:
                writer = BoundedProducer(self._options(), min(self._largest.values(), default=MAX_RECORD_BYTES))
                await writer.open()
                self._writer = writer
            return self._writer

    def _abandon(self, writer: BoundedProducer) -> None:
        """The next call makes a new one; the old one leaves in the background, because nobody should wait for it."""
        if self._writer is writer:
            logger.warning("The Kafka producer is replaced: it is stuck, or the broker refused one of its batches.")
            self._writer = None
            task = asyncio.create_task(writer.abandon(), name="kafka-abandon")
            self._leaving.add(task)
            task.add_done_callback(self._leaving.discard)

    # --- reading

    async def reader(self, start: Mapping[Partition, int]) -> LogReader:
        self._check_open()
        first = await self.first_offsets({at.topic for at, offset in start.items() if offset == 0})
        missing = [at for at in start if at.partition >= self._counts.get(at.topic, 0)]
        if missing:
            raise SettingsError(f"The topic {missing[0].topic} has no partition {missing[0].partition}.")
        from_where = {at: first.get(at, 0) if offset == 0 else offset for at, offset in start.items()}
        seldom = {at: offset for at, offset in from_where.items() if at.topic in UNAWAITED}
        if len(seldom) in (0, len(from_where)):
            return await self._reading(from_where)
        prompt = await self._reading({at: offset for at, offset in from_where.items() if at not in seldom})
        try:
            return MergedReader(
                prompt, await self._reading(seldom, fetch_max_wait_ms=SELDOM_WAIT_MS, fetch_min_bytes=SELDOM_BYTES)
            )
        except BaseException:
            await prompt.close()
            raise

    async def _reading(self, start: Mapping[Partition, int], **options: int) -> KafkaLogReader:
        consumer = AIOKafkaConsumer(
            **self._options(),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="none",
            isolation_level="read_committed",
            max_partition_fetch_bytes=1024 * 1024,  # a larger record comes alone
            request_timeout_ms=10_000,
            **{"fetch_max_wait_ms": FETCH_WAIT_MS, **options},
        )
        try:
            async with asyncio.timeout(QUERY_S):
                await consumer.start()
        except ABSENT as error:
            await settle(consumer.stop())
            raise _away("does not accept a reader") from error
        return KafkaLogReader(consumer, start)

    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        return await self._offsets(topics, "end_offsets")

    async def first_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        return await self._offsets(topics, "beginning_offsets")

    async def _offsets(self, topics: Iterable[str], which: str) -> dict[Partition, int]:
        async with self._asking() as (_, consumer):
            wanted = [TopicPartition(*at) for at in await self._partitions(topics)]
            found = await getattr(consumer, which)(wanted) if wanted else {}
        return {Partition(at.topic, at.partition): offset for at, offset in found.items()}

    async def committed(self, group: str, topics: Iterable[str]) -> dict[Partition, int]:
        async with self._asking() as (admin, _):
            wanted = [TopicPartition(*at) for at in await self._partitions(topics)]
            found = await _group_offsets(admin, group, wanted) if wanted else {}
        return {Partition(at.topic, at.partition): value.offset for at, value in found.items() if value.offset >= 0}

    # --- the connections for questions

    @contextlib.asynccontextmanager
    async def _asking(self) -> AsyncIterator[tuple[AIOKafkaAdminClient, AIOKafkaConsumer]]:
        """The admin client and a consumer for questions, for at most QUERY_S; made anew after a failure."""
        self._check_open()
        try:
            async with asyncio.timeout(QUERY_S):
                if self._queries is None:
                    await self._connect()
                assert self._queries is not None
                yield self._queries
        except ABSENT as error:
            await self._disconnect()
            raise _away("does not answer") from error

    async def _connect(self) -> None:
        timeout_ms = int(QUERY_S * 1000)
        admin = AIOKafkaAdminClient(**self._options(), request_timeout_ms=timeout_ms)
        consumer = AIOKafkaConsumer(
            **self._options(), group_id=None, enable_auto_commit=False, request_timeout_ms=timeout_ms
        )
        try:
            await admin.start()
            await consumer.start()
        except BaseException:
            await settle(admin.close())
            await settle(consumer.stop())
            raise
        if self._queries is not None:  # another call connected meanwhile
            await settle(admin.close())
            await settle(consumer.stop())
        else:
            self._queries = admin, consumer

    async def _disconnect(self) -> None:
        queries, self._queries = self._queries, None
        if queries is not None:
            await settle(queries[0].close())
            await settle(queries[1].stop())

    def _check_open(self) -> None:
        if not self._started:
            raise LogUnavailable("The log is not open.", retry_after_ms=RETRY_AFTER_MS)


class KafkaLogReader(LogReader):
    """A bare consumer: assigned, not subscribed; it resumes by itself when the broker is back."""

    def __init__(self, consumer: AIOKafkaConsumer, start: Mapping[Partition, int]) -> None:
        self._consumer = consumer
        self._assigned = [TopicPartition(*at) for at in start]
        self._heard_at = time.monotonic()
        self._heard_ms = 0
        consumer.assign(self._assigned)
        for at, offset in start.items():
            consumer.seek(TopicPartition(*at), offset)

    async def read(self, *, timeout_s: float, max_records: int) -> list[Record]:
        if not self._assigned:
            await asyncio.sleep(timeout_s)
            return []
        try:
            batches = await self._consumer.getmany(timeout_ms=int(timeout_s * 1000), max_records=max_records)
        except OffsetOutOfRangeError as error:
            at, offset = next(iter(error.args[0].items()))
            raise StoreError(
                f"Offset {offset} of {at.topic}/{at.partition} is not on this broker: its retention deleted it, or it is another log. "
                "Point at the right broker, or move thalweg.duckdb away to begin anew with this one."
            ) from None
        except KafkaError as error:
            raise _away("does not answer the reader") from error
        self._listen()
        return [_record(message) for messages in batches.values() for message in messages]

    def _listen(self) -> None:
        """Note whether any partition was answered since the last look. Raises LogUnavailable after AWAY_S of silence."""
        heard_ms = max((self._consumer.last_poll_timestamp(at) or 0) for at in self._assigned)
        now = time.monotonic()
        if heard_ms != self._heard_ms:
            self._heard_ms, self._heard_at = heard_ms, now
        elif now - self._heard_at > AWAY_S:
            self._heard_at = now
            raise _away(f"has not answered the reader for {AWAY_S:.0f} s")

    async def close(self) -> None:
        await settle(self._consumer.stop())


@contextlib.contextmanager
def _silent_client() -> Iterator[None]:
    """Without the client's own log lines: why a start failed is said once, in our sentence."""
    client = logging.getLogger("aiokafka")
    level = client.level
    client.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        client.setLevel(level)


async def _group_offsets(
    admin: AIOKafkaAdminClient, group: str, wanted: list[TopicPartition]
) -> Mapping[TopicPartition, Any]:
    """Asked again while there is no coordinator: the first question ever makes the broker create one."""
    while True:
        try:
            return await admin.list_consumer_group_offsets(group, partitions=wanted)
        except KafkaError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(0.1)


def _are_fenced(answer: Any) -> bool:
    """Whether the controller waits for its brokers: while they start, and after a pause that was too long for it."""
    return any(code == INVALID_REPLICATION and "fenced" in str(reason) for _, code, *reason in answer.topic_errors)


def _configs(topic: Topic) -> dict[str, str]:
    """What a topic is created with. A dead letter is its record and our headers, so it may be larger."""
    largest = MAX_RECORD_BYTES if topic.name.endswith(DLQ_SUFFIX) else MAX_MESSAGE_BYTES
    retention = (
        {"retention.ms": "-1", "retention.bytes": "-1"}
        if topic.retention == "forever"
        else {"retention.ms": topic.retention}
    )
    return {"cleanup.policy": "delete", "max.message.bytes": str(largest), **retention}


def _record(message: Any) -> Record:
    headers = tuple((name, value or b"") for name, value in message.headers)
    if headers and headers[0][0] == UNREADABLE:
        logger.error(
            "%s/%d: %s They become a dead letter.",
            message.topic,
            message.partition,
            headers[0][1].decode("utf-8", "replace"),
        )
    return Record(
        message.topic, message.partition, message.offset, message.timestamp, message.key, message.value, headers
    )


def _away(what: str) -> LogUnavailable:
    return LogUnavailable(f"Kafka {what}.", retry_after_ms=RETRY_AFTER_MS)
