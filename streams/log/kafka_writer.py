"""The producing half of the Kafka log: one idempotent producer, replaced after any failure.

An idempotent producer numbers its batches. A batch that fails leaves a gap in the numbers, and the broker then refuses
everything that follows (OutOfOrderSequenceNumber, for ever). So batches are not allowed to fail: the producer's own
request timeout is far longer than any outage it is kept for, the caller has a deadline of its own, and after any
failure, or when the oldest record has waited for STUCK_S, the producer is abandoned and the next call makes a new one.
An abandoned producer's records may or may not be on the log; the error that its callers got says so.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError, ProducerClosed

from streams.log.base import MAX_RECORD_BYTES, Outgoing, record_bytes

MAX_BATCH_BYTES = 256 * 1024
MAX_IN_FLIGHT_BYTES = 64 * 1024 * 1024
REQUEST_TIMEOUT_MS = 10 * 60 * 1000
STUCK_S = 30.0
CLOSE_S = 2.0


class BoundedProducer:
    """A producer with a bounded number of bytes in flight. Made for one event loop; `open` before use."""

    def __init__(self, options: Mapping[str, Any], largest: int = MAX_RECORD_BYTES) -> None:
        """`largest`: bytes of a record that every topic takes; no batch grows beyond them."""
        self._producer = AIOKafkaProducer(
            **options,
            acks="all",
            enable_idempotence=True,
            linger_ms=0,
            max_batch_size=min(MAX_BATCH_BYTES, largest),
            max_request_size=MAX_RECORD_BYTES,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
        )
        self._waiting: dict[asyncio.Future[Any], tuple[float, int]] = {}
        self._bytes = 0
        self._room = asyncio.Event()
        self.abandoned = False

    async def open(self) -> None:
        """Connect and get a producer id. Raises KafkaError; may be cancelled."""
        try:
            await self._producer.start()
        except BaseException:
            await self.abandon()
            raise

    async def append(self, placed: Sequence[tuple[Outgoing, int]]) -> list[int]:
        """The offsets of the records, in order, once all are acknowledged. Raises KafkaError; may be cancelled."""
        futures = [await self._send(record, partition) for record, partition in placed]
        if futures:
            await asyncio.wait(futures)  # unlike gather it leaves them alone when the caller gives up
        return [future.result().offset for future in futures]

    async def _send(self, record: Outgoing, partition: int) -> asyncio.Future[Any]:
        size = record_bytes(record)
        while self._bytes and self._bytes + size > MAX_IN_FLIGHT_BYTES:
            self._room.clear()
            await self._room.wait()
        if self.abandoned:
            raise ProducerClosed
        headers = list(record.headers)
        if record.key is None and record.value is None:  # `send` asserts that there is one; a record needs neither
            batch = self._producer.create_batch()
            batch.append(timestamp=None, key=None, value=None, headers=headers)
            future = await self._producer.send_batch(batch, record.topic, partition=partition)
        else:
            future = await self._producer.send(record.topic, record.value, record.key, partition, headers=headers)
        self._waiting[future] = (time.monotonic(), size)
        self._bytes += size
        future.add_done_callback(self._done)
        return future

    def _done(self, future: asyncio.Future[Any]) -> None:
        self._bytes -= self._waiting.pop(future)[1]
        self._room.set()
        if not future.cancelled():
            future.exception()  # seen: the caller may have left

    @property
    def stuck(self) -> bool:
        """Whether the oldest record has waited longer than STUCK_S."""
        oldest = next(iter(self._waiting.values()), None)
        return oldest is not None and time.monotonic() - oldest[0] > STUCK_S

    async def close(self, timeout_s: float) -> None:
        """Deliver what is in flight, for at most `timeout_s`, then disconnect."""
        with contextlib.suppress(TimeoutError, KafkaError):
            async with asyncio.timeout(timeout_s):
                await self._producer.flush()
        await self.abandon()

    async def abandon(self) -> None:
        """Disconnect without delivering: calls that still wait get ProducerClosed. Takes a few seconds at most."""
        if self.abandoned:
            return
        self.abandoned = True
        producer = self._producer
        sender = producer._sender.sender_task
        if sender is not None:
            sender.cancel()
        await settle(producer.client.close())
        if sender is not None and not sender.done():
            sender.cancel()  # the first cancellation may wait for a request that is never answered
            await asyncio.wait([sender], timeout=CLOSE_S)
        _fail_all(producer)
        await settle(producer.stop())


def _fail_all(producer: AIOKafkaProducer) -> None:
    """Fail the batches that are left: `stop` would wait for them, and nothing sends them any more."""
    accumulator = producer._message_accumulator
    batches = [batch for queue in accumulator._batches.values() for batch in queue]
    accumulator.fail_all(ProducerClosed())
    for batch in batches:
        batch._drain_waiter.exception()  # retrieved, or asyncio reports it when the batch is collected


async def settle(closing: Coroutine[Any, Any, None]) -> None:
    """Run a client's own closing for at most CLOSE_S, and ignore its errors.

    It runs in a task of its own, because it leaks the cancellations of its tasks.
    """
    task = asyncio.create_task(closing)
    await asyncio.wait([task], timeout=CLOSE_S)
    if not task.done():
        task.cancel()
    elif not task.cancelled():
        task.exception()
