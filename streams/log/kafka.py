"""The log on Kafka: acknowledged by all in-sync replicas, read without a consumer group.

docs/kafka.md says what is set and why. A call fails with a typed error within its own deadline;
`streams.log.kafka_writer` deals with what the broker does meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.errors import KafkaError, for_code

from streams.errors import LogUnavailable, SettingsError
from streams.log import backoff, kafka_batches
from streams.log.base import MAX_RECORD_BYTES, Log, LogReader, Outgoing
from streams.log.kafka_limits import RETRY_AFTER_MS, judge, read_limits
from streams.log.kafka_probe import why_refused
from streams.log.kafka_reader import CONNECTION_ERRORS, KafkaLogReader, unavailable
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
"""How long quiet partitions may hold up busy ones: while a fetch waits at the broker, the client sends no other."""
BACKGROUND_WAIT_MS = 500
BACKGROUND_BYTES = 64 * 1024
"""Topics that no caller waits for are fetched when this much is there, or twice a second.

They have most of the partitions, and each partition of a fetch has a cost.
"""
MAX_MESSAGE_BYTES = 9 * 1024 * 1024
TOPIC_EXISTS = 36
INVALID_REPLICATION = 38


class KafkaLog(Log):
    """The log on the brokers of `bootstrap` (`host:port[,host:port]`)."""

    def __init__(self, bootstrap: str, security: KafkaSecurity | None = None) -> None:
        self.bootstrap = bootstrap
        self.security = security or KafkaSecurity()
        self._counts: dict[str, int] = {}
        self._largest: dict[str, int] = {}
        self._writer: BoundedProducer | None = None
        self._opening = asyncio.Lock()
        self._closing: set[asyncio.Task[None]] = set()
        self._connections: tuple[AIOKafkaAdminClient, AIOKafkaConsumer] | None = None
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
                    await self._refresh()
        except CONNECTION_ERRORS as error:
            await self._disconnect()
            with _silent_client():
                reason = await why_refused(self.bootstrap, self.security)
            if reason is not None:
                raise SettingsError(reason) from None
            raise LogUnavailable(
                f"No Kafka broker answers at {self.bootstrap}, or it does not accept this connection's security "
                f"settings (THALWEG_KAFKA_PROTOCOL is {self.security.protocol}). "
                "Start it, or choose another with --broker or THALWEG_BROKER.",
                retry_after_ms=RETRY_AFTER_MS,
            ) from error
        self._started = True

    async def stop(self) -> None:
        self._started = False
        writer, self._writer = self._writer, None
        if writer is not None:
            await writer.close(STOP_S)
        if self._closing:
            await asyncio.wait(self._closing, timeout=STOP_S)
        await self._disconnect()

    # --- topics

    async def create_topics(self, topics: Iterable[Topic]) -> list[str]:
        wanted = list(topics)
        async with self._clients() as (admin, _):
            await self._refresh()
            missing = [topic for topic in wanted if topic.name not in self._counts]
            created = await self._create(admin, missing) if missing else []
        for topic in wanted:
            existing = self._counts[topic.name]
            if existing != topic.partitions:
                raise SettingsError(
                    f"The topic {topic.name} has {existing} partitions, not {topic.partitions}; the number is chosen "
                    f"once. Set `partitions = {existing}`, use another broker, or delete the topic and all it holds."
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
        while not await self._refresh(ready=[topic.name for topic in missing]):
            await asyncio.sleep(0.05)
        return created

    async def _refresh(self, ready: Iterable[str] = ()) -> bool:
        """Read partition counts of all topics and limits of ours; True when all of `ready` have leaders.

        It asks for all topics because a question by name may make the broker create them.
        """
        assert self._connections is not None
        described = {
            topic["topic"]: topic for topic in await self._connections[0].describe_topics() if topic["error_code"] == 0
        }
        self._counts = {name: len(topic["partitions"]) for name, topic in described.items()}
        self._largest |= await read_limits(
            self._connections[0], [name for name in described if name.startswith(PREFIX)]
        )
        return all(name in described and all(p["leader"] >= 0 for p in described[name]["partitions"]) for name in ready)

    async def _partitions(self, topics: Iterable[str]) -> list[Partition]:
        names = sorted(set(topics))
        if any(name not in self._counts for name in names):
            await self._refresh()
        return [Partition(name, number) for name in names for number in range(self._counts.get(name, 0))]

    # --- writing

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        self._check_open()
        self.check(records)
        writer = None
        try:
            async with asyncio.timeout(timeout_s):
                placed = [(record, await self._partition_of(record)) for record in records]
                writer = await self._open_writer()
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
                "Kafka has the records already but no longer knows their offsets; repeat the call.", retry_after_ms=0
            )
        return [
            Position(record.topic, partition, offset)
            for (record, partition), offset in zip(placed, offsets, strict=True)
        ]

    def largest(self, topic: str) -> int:
        return self._largest.get(topic, MAX_RECORD_BYTES)

    async def _partition_of(self, record: Outgoing) -> int:
        if record.topic not in self._counts:
            async with self._clients():
                await self._refresh()
        count = self._counts.get(record.topic, 0)
        if count == 0:
            raise SettingsError(f"The topic {record.topic} does not exist; `thalweg topics create` makes the topics.")
        partition = record.partition if record.partition is not None else partition_for(record.key or b"", count)
        if not 0 <= partition < count:
            raise SettingsError(f"The topic {record.topic} has no partition {partition}.")
        return partition

    async def _open_writer(self) -> BoundedProducer:
        async with self._opening:
            if self._writer is None:
                writer = BoundedProducer(self._options(), min(self._largest.values(), default=MAX_RECORD_BYTES))
                await writer.open()
                self._writer = writer
            return self._writer

    def _abandon(self, writer: BoundedProducer) -> None:
        """Let the next call make a new producer, and close this one in the background."""
        if self._writer is writer:
            logger.warning("The Kafka producer is replaced: it is stuck, or the broker refused one of its batches.")
            self._writer = None
            task = asyncio.create_task(writer.abandon(), name="kafka-abandon")
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    # --- reading

    async def reader(self, start: Mapping[Partition, int]) -> LogReader:
        self._check_open()
        first = await self.first_offsets({at.topic for at, offset in start.items() if offset == 0})
        missing = [at for at in start if at.partition >= self._counts.get(at.topic, 0)]
        if missing:
            raise SettingsError(f"The topic {missing[0].topic} has no partition {missing[0].partition}.")
        offsets = {at: first.get(at, 0) if offset == 0 else offset for at, offset in start.items()}
        background = {at: offset for at, offset in offsets.items() if at.topic in UNAWAITED}
        if len(background) in (0, len(offsets)):
            return await self._open_reader(offsets)
        prompt = await self._open_reader({at: offset for at, offset in offsets.items() if at not in background})
        patience = {"fetch_max_wait_ms": BACKGROUND_WAIT_MS, "fetch_min_bytes": BACKGROUND_BYTES}
        try:
            return MergedReader(prompt, await self._open_reader(background, **patience))
        except BaseException:
            await prompt.close()
            raise

    async def _open_reader(self, start: Mapping[Partition, int], **options: int) -> KafkaLogReader:
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
        except CONNECTION_ERRORS as error:
            await settle(consumer.stop())
            raise unavailable("does not accept a reader") from error
        return KafkaLogReader(consumer, start)

    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        return await self._offsets(topics, "end_offsets")

    async def first_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        return await self._offsets(topics, "beginning_offsets")

    async def _offsets(self, topics: Iterable[str], which: str) -> dict[Partition, int]:
        async with self._clients() as (_, consumer):
            wanted = [TopicPartition(*at) for at in await self._partitions(topics)]
            found = await getattr(consumer, which)(wanted) if wanted else {}
        return {Partition(at.topic, at.partition): offset for at, offset in found.items()}

    async def committed(self, group: str, topics: Iterable[str]) -> dict[Partition, int]:
        async with self._clients() as (admin, _):
            wanted = [TopicPartition(*at) for at in await self._partitions(topics)]
            found = await _group_offsets(admin, group, wanted) if wanted else {}
        return {Partition(at.topic, at.partition): value.offset for at, value in found.items() if value.offset >= 0}

    # --- the connections for metadata

    @contextlib.asynccontextmanager
    async def _clients(self) -> AsyncIterator[tuple[AIOKafkaAdminClient, AIOKafkaConsumer]]:
        """The admin client and a consumer for metadata, for at most QUERY_S; made anew after a failure."""
        self._check_open()
        try:
            async with asyncio.timeout(QUERY_S):
                if self._connections is None:
                    await self._connect()
                assert self._connections is not None
                yield self._connections
        except CONNECTION_ERRORS as error:
            await self._disconnect()
            raise unavailable("does not answer") from error

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
        if self._connections is not None:  # another call connected meanwhile
            await settle(admin.close())
            await settle(consumer.stop())
        else:
            self._connections = admin, consumer

    async def _disconnect(self) -> None:
        queries, self._connections = self._connections, None
        if queries is not None:
            await settle(queries[0].close())
            await settle(queries[1].stop())

    def _check_open(self) -> None:
        if not self._started:
            raise LogUnavailable("The log is not open.", retry_after_ms=RETRY_AFTER_MS)


@contextlib.contextmanager
def _silent_client() -> Iterator[None]:
    """Silence the client's own log lines: one sentence of ours says why a start failed."""
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
    """The offsets that a group has committed; waits while the broker creates its coordinator."""
    while True:
        try:
            return await admin.list_consumer_group_offsets(group, partitions=wanted)
        except KafkaError as error:
            if not error.retriable:
                raise
            await asyncio.sleep(0.1)


def _are_fenced(answer: Any) -> bool:
    """Whether the controller fences its brokers off: while they start, and after too long a pause."""
    return any(code == INVALID_REPLICATION and "fenced" in str(reason) for _, code, *reason in answer.topic_errors)


def _configs(topic: Topic) -> dict[str, str]:
    """The settings of a new topic. A dead letter is a record and our headers, so it may be larger."""
    largest = MAX_RECORD_BYTES if topic.name.endswith(DLQ_SUFFIX) else MAX_MESSAGE_BYTES
    retention = (
        {"retention.ms": "-1", "retention.bytes": "-1"}
        if topic.retention == "forever"
        else {"retention.ms": topic.retention}
    )
    return {"cleanup.policy": "delete", "max.message.bytes": str(largest), **retention}
