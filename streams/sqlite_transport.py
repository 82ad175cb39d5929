"""Faust's transport over the embedded log, registered in the entry point group `faust.transports`.

The same agents run on `kafka://` and `sqlite://`. A process that embeds Faust shares its own log with the transport
by `use_log`, so that both see an append at once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from faust.transport import base
from faust.types import TP, ConsumerMessage, RecordMetadata

from streams.errors import LogUnavailable
from streams.log.base import Outgoing, Record
from streams.log.sqlite import SqliteLog
from streams.partitioning import partition_for
from streams.positions import Partition

FETCH_RECORDS = 500
logger = logging.getLogger(__name__)
_logs: dict[str, SqliteLog] = {}


def use_log(log: SqliteLog) -> None:
    """Let the transport of that file share this started log."""
    _logs[log.path] = log


class Consumer(base.Consumer):
    """A consumer group of one member: it is assigned every partition of its topics."""

    def on_init(self) -> None:
        self.log_file = _log_of(self.transport)
        self._topics: frozenset[str] = frozenset()
        self._assigned: set[TP] = set()
        self._at: dict[TP, int] = {}
        self._uncommitted: dict[TP, int] = {}
        self._changed: asyncio.Event | None = None
        self._rebalance: asyncio.Task[None] | None = None

    async def create_topic(self, topic: str, partitions: int, replication: int, **_: Any) -> None:
        """Topics are made by `thalweg topics create` and at the node's start, never by Faust."""

    async def subscribe(self, topics: Iterable[str]) -> None:
        if frozenset(topics) == self._topics:
            return
        self._topics = frozenset(topics)
        assigned = {
            TP(topic, number) for topic in self._topics for number in range(self.log_file.partition_count(topic))
        }
        self._rebalance = asyncio.ensure_future(
            self._assign(assigned)
        )  # not awaited here: Faust waits for it elsewhere

    async def _assign(self, assigned: set[TP]) -> None:
        self.app.on_rebalance_start()
        await self.on_partitions_revoked(self._assigned)
        self._assigned = assigned
        await self.on_partitions_assigned(assigned)

    def assignment(self) -> set[TP]:
        return self._assigned

    def _new_topicpartition(self, topic: str, partition: int) -> TP:
        return TP(topic, partition)

    async def _getmany(self, active_partitions: set[TP] | None, timeout: float) -> dict[TP, list[Record]]:
        if self._changed is None:
            self._changed = self.log_file.subscribe()
        for _ in range(2):
            self._changed.clear()
            found = self._fetch(self._assigned if active_partitions is None else active_partitions)
            if found:
                return found
            try:
                async with asyncio.timeout(timeout):
                    await self._changed.wait()
            except TimeoutError:
                return {}
        return {}

    def _fetch(self, partitions: set[TP]) -> dict[TP, list[Record]]:
        found: dict[TP, list[Record]] = {}
        for tp in partitions:
            if self.log_file.end(Partition(*tp)) <= self._at.get(tp, 0):
                continue
            records = self.log_file.fetch(Partition(*tp), self._at.get(tp, 0), FETCH_RECORDS)
            if records:
                self._at[tp] = records[-1].offset + 1
                found[tp] = records
        return found

    def _to_message(self, tp: TP, record: Record) -> ConsumerMessage:
        return ConsumerMessage(
            record.topic,
            record.partition,
            record.offset,
            record.timestamp_ms / 1000,
            1,
            list(record.headers),
            record.key,
            record.value,
            None,
            len(record.key or b""),
            len(record.value or b""),
            tp,
            generation_id=self.app.consumer_generation_id,
        )

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Write the offsets; False when the log takes nothing, and then the next commit includes them.

        The stages go on meanwhile. A stage that is restarted before that reads the records again, and their facts are
        applied once.
        """
        self._uncommitted |= offsets
        try:
            await self.log_file.commit(
                self.app.conf.id, {Partition(*tp): offset for tp, offset in self._uncommitted.items()}
            )
        except LogUnavailable as error:
            logger.warning("the offsets of the stages are not committed yet: %s", error.message)
            return False
        self._uncommitted = {}
        return True

    async def seek_to_committed(self) -> Mapping[TP, int]:
        committed = await self.log_file.committed(self.app.conf.id, self._topics)
        self._at = {tp: committed.get(Partition(*tp), 0) for tp in self._assigned}
        return dict(self._at)

    async def _seek(self, partition: TP, offset: int) -> None:
        self._at[partition] = offset

    async def seek_wait(self, partitions: Mapping[TP, int]) -> None:
        for tp, offset in partitions.items():
            self._at[tp] = offset
            self._read_offset[tp] = offset if offset else None

    async def position(self, tp: TP) -> int:
        return self._at.get(tp, 0)

    def highwater(self, tp: TP) -> int:
        return self._at.get(tp, 0)

    async def highwaters(self, *partitions: TP) -> dict[TP, int]:
        ends = await self.log_file.end_offsets({tp.topic for tp in partitions})
        return {tp: ends.get(Partition(*tp), 0) for tp in partitions}

    async def earliest_offsets(self, *partitions: TP) -> dict[TP, int]:
        return dict.fromkeys(partitions, 0)

    def topic_partitions(self, topic: str) -> int:
        return self.log_file.partition_count(topic)

    def key_partition(self, topic: str, key: bytes | None, partition: int | None = None) -> int:
        return partition if partition is not None else partition_for(key or b"", self.log_file.partition_count(topic))

    def close(self) -> None:
        if self._changed is not None:
            self.log_file.unsubscribe(self._changed)
            self._changed = None

    def verify_event_path(self, now: float, tp: TP) -> None:
        """Faust's check for a stuck broker; a file has no such state."""


class Producer(base.Producer):
    """Faust's own producer; the stages publish through `streams.log` instead."""

    def on_init(self) -> None:
        self.log_file = _log_of(self.transport)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> asyncio.Future[RecordMetadata]:
        return asyncio.ensure_future(self.send_and_wait(topic, key, value, partition, timestamp, headers))

    async def send_and_wait(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None,
        timestamp: float | None,
        headers: Any,
        *,
        transactional_id: str | None = None,
    ) -> RecordMetadata:
        pairs = headers.items() if isinstance(headers, Mapping) else headers or ()
        [at] = await self.log_file.publish([Outgoing(topic, key, value, tuple(pairs), partition)])
        return RecordMetadata(topic, at.partition, TP(topic, at.partition), at.offset, timestamp, 1)

    async def create_topic(self, topic: str, partitions: int, replication: int, **_: Any) -> None:
        """Topics are made by the admin step, never by Faust."""

    def key_partition(self, topic: str, key: bytes) -> TP:
        return TP(topic, partition_for(key, self.log_file.partition_count(topic)))

    async def flush(self) -> None:
        await self.buffer.flush()

    def supports_headers(self) -> bool:
        return True


class Transport(base.Transport):
    """`sqlite:///path/to/log.db`"""

    Consumer = Consumer
    Producer = Producer
    default_port = 0
    driver_version = "sqlite"


def _log_of(transport: base.Transport) -> SqliteLog:
    path = transport.url[0].path
    if path not in _logs:
        raise RuntimeError(f"no started log for {path}: call streams.sqlite_transport.use_log first")
    return _logs[path]
