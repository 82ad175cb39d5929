"""The log: an append-only, partitioned sequence of records. Two implementations, one contract.

`publish` returns only when the record is durable: on Kafka acknowledged by all in-sync replicas, on SQLite
committed and synced. A record that was answered is there after any crash; a call that raised may or may not
have written (so ids are deterministic and a repeat changes nothing).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from streams.errors import RecordRefused
from streams.positions import Partition, Position
from streams.topics import Topic

Headers = tuple[tuple[str, bytes], ...]
RECORD_BYTES = 512 * 1024
"""Derived facts are cut into records of at most this: half of what a broker takes by default."""
MAX_RECORD_BYTES = 10 * 1024 * 1024
"""No record is larger: 8 MiB of data, headers, and what a dead letter adds."""
UNREADABLE = "thalweg.unreadable"
"""The header of a record that replaces others which cannot be read; its value is a sentence that says why."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A record to publish. Without `partition`, the key's hash chooses it."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A record as it lies on the log."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    @property
    def position(self) -> Position:
        return Position(self.topic, self.partition, self.offset)


def record_bytes(record: Outgoing) -> int:
    """About the size of a record on the wire."""
    return (
        len(record.key or b"")
        + len(record.value or b"")
        + sum(len(name) + len(value) + 4 for name, value in record.headers)
        + 100
    )


class LogReader(ABC):
    """Reads partitions from given offsets, in order per partition, without any consumer group."""

    @abstractmethod
    async def read(self, *, timeout_s: float, max_records: int) -> list[Record]:
        """The next records, as soon as there is one; an empty list after `timeout_s`.

        Raises LogUnavailable when the broker stays away. Never raises Poison: the bytes are not decoded.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release connections; idempotent."""


class Log(ABC):
    """One broker, seen by one process. Opened by `streams.log.open_log(url)`; start before use."""

    @abstractmethod
    async def start(self) -> None:
        """Connect. Raises LogUnavailable when the broker is not there, within 10 s."""

    @abstractmethod
    async def stop(self) -> None:
        """Finish the accepted writes, then disconnect; idempotent."""

    @abstractmethod
    async def create_topics(self, topics: Iterable[Topic]) -> list[str]:
        """Create the missing topics; returns their names.

        Raises SettingsError when an existing topic has another number of partitions.
        """

    @abstractmethod
    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        """Append the records, in order per partition; returns their positions once all are durable.

        Raises LogUnavailable after `timeout_s`; then any of them may be on the log or not. Raises RecordRefused when
        the log can never take one of them: when `check` says so, none of them is on the log.
        """

    def largest(self, topic: str) -> int:
        """The number of bytes that a record of this topic may have, as far as is known."""
        return MAX_RECORD_BYTES

    def check(self, records: Iterable[Outgoing]) -> None:
        """Raise RecordRefused when a record is larger than its topic takes. Needs no connection."""
        for record in records:
            size, largest = record_bytes(record), self.largest(record.topic)
            if size > largest:
                hint = "Send it in parts."
                if largest < MAX_RECORD_BYTES:
                    hint = f"Send it in parts, or set the topic's `max.message.bytes` to {MAX_RECORD_BYTES}."
                raise RecordRefused(f"This record has {size} bytes; {record.topic} takes at most {largest}. {hint}")

    @abstractmethod
    async def reader(self, start: Mapping[Partition, int]) -> LogReader:
        """A reader of these partitions from these offsets (0 is the oldest)."""

    @abstractmethod
    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        """The next offset to be written, per partition; topics that do not exist are left out."""

    @abstractmethod
    async def first_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        """The oldest offset that is still there, per partition."""

    @abstractmethod
    async def committed(self, group: str, topics: Iterable[str]) -> dict[Partition, int]:
        """The next offsets that a consumer group has committed, by partition."""
