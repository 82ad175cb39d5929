"""Reading from Kafka: one consumer that is assigned its partitions and notices when no broker answers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError, OffsetOutOfRangeError

from streams.errors import LogUnavailable, StoreError
from streams.log.base import UNREADABLE, LogReader, Record
from streams.log.kafka_limits import RETRY_AFTER_MS
from streams.log.kafka_writer import settle
from streams.positions import Partition

logger = logging.getLogger(__name__)

SILENCE_S = 60.0
CONNECTION_ERRORS = (KafkaError, OSError, TimeoutError, asyncio.TimeoutError)


class KafkaLogReader(LogReader):
    """A consumer without a group; it resumes by itself when the broker is back."""

    def __init__(self, consumer: AIOKafkaConsumer, start: Mapping[Partition, int]) -> None:
        self._consumer = consumer
        self._assigned = [TopicPartition(*at) for at in start]
        self._last_answer_at = time.monotonic()
        self._last_poll_ms = 0
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
                f"Offset {offset} of {at.topic}/{at.partition} is not on this broker: its retention deleted it, "
                "or it is another log. Name the right broker, or move thalweg.duckdb away and start with this one."
            ) from None
        except KafkaError as error:
            raise unavailable("does not answer the reader") from error
        self._check_silence()
        return [record_of(message) for messages in batches.values() for message in messages]

    def _check_silence(self) -> None:
        """Raise LogUnavailable when no partition has been answered for SILENCE_S."""
        poll_ms = max((self._consumer.last_poll_timestamp(at) or 0) for at in self._assigned)
        now = time.monotonic()
        if poll_ms != self._last_poll_ms:
            self._last_poll_ms, self._last_answer_at = poll_ms, now
        elif now - self._last_answer_at > SILENCE_S:
            self._last_answer_at = now
            raise unavailable(f"has not answered the reader for {SILENCE_S:.0f} s")

    async def close(self) -> None:
        await settle(self._consumer.stop())


def record_of(message: Any) -> Record:
    """The record that a consumer's message is."""
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


def unavailable(what: str) -> LogUnavailable:
    """The error that says what Kafka does not do."""
    return LogUnavailable(f"Kafka {what}.", retry_after_ms=RETRY_AFTER_MS)
