"""One record in place of a batch that cannot be read, so that a reader continues behind it.

aiokafka raises in the middle of a read, at the same offset for ever, and a process that reads that partition ends. This
is installed for the whole process, so that it holds for Faust's consumers too. The record that replaces the batch has
the batch's last offset and bytes, and a sentence in the header UNREADABLE: the codec refuses it with that sentence, and
it becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import aiokafka.codec
import aiokafka.consumer.fetcher as fetcher
from aiokafka.record.memory_records import MemoryRecords

from streams.errors import SettingsError
from streams.log.base import UNREADABLE

CODECS = ("gzip", "snappy", "lz4", "zstd")
"""The codecs that a producer may compress with."""
KEPT_BYTES = 9 * 1024 * 1024
"""A dead letter has only the beginning of a larger batch: its topic takes no more. The log still has all of it."""
MAX_REASON = 200
LENGTH, LAST_OFFSET_DELTA, COUNT = slice(8, 12), slice(23, 27), slice(57, 61)
"""The places of these numbers in the bytes of a batch."""


def install() -> None:
    """Install it, once; further calls change nothing. Raises SettingsError when a codec's library is missing."""
    missing = [codec for codec in CODECS if not getattr(aiokafka.codec, f"has_{codec}")()]
    if missing:
        raise SettingsError(
            f"Records compressed with {', '.join(missing)} could not be read: the package cramjam is missing. "
            "Install what requirements.lock names: `python3 dev.py setup`."
        )
    fetcher.MemoryRecords = Batches


class Batches:
    """The batches of one answer of the broker, in place of aiokafka's own `MemoryRecords`."""

    def __init__(self, data: bytes) -> None:
        self._batches = MemoryRecords(data)
        self._data = memoryview(data)
        self._next = 0

    def size_in_bytes(self) -> int:
        return self._batches.size_in_bytes()

    def has_next(self) -> bool:
        return self._batches.has_next()

    def next_batch(self) -> Batch:
        start = self._next
        self._next += LENGTH.stop + int.from_bytes(self._data[start + LENGTH.start : start + LENGTH.stop])
        return Batch(self._batches.next_batch(), self._data[start : self._next])


class Batch:
    """One batch: its records, or those that can be read and one record that replaces the rest."""

    def __init__(self, batch: Any, data: memoryview) -> None:
        self._batch = batch
        self._data = data
        self._is_whole = batch.validate_crc()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)

    def validate_crc(self) -> bool:
        return True  # a damaged batch comes as a record, not as an error

    @property
    def producer_id(self) -> int | None:
        return self._batch.producer_id if self._is_whole else None

    @property
    def is_control_batch(self) -> bool:
        return bool(self._is_whole and self._batch.is_control_batch)

    @property
    def next_offset(self) -> int:
        """The offset behind the batch; a damaged header's smaller count, so that no record is skipped."""
        if self._is_whole:
            return int(self._batch.next_offset)
        last, count = (int.from_bytes(self._data[place], signed=True) for place in (LAST_OFFSET_DELTA, COUNT))
        return int(self._batch.base_offset) + max(0, min(last, count - 1)) + 1

    def __iter__(self) -> Iterator[Any]:
        first = self._batch.base_offset
        try:
            if not self._is_whole:
                raise ValueError("its checksum is wrong")
            for record in self._batch:
                yield record
                first = record.offset + 1
        except MemoryError:
            raise
        except Exception as error:  # each codec raises its own errors
            yield Substitute(
                first,
                self.next_offset - 1,
                str(error)[:MAX_REASON] or type(error).__name__,
                bytes(self._data[:KEPT_BYTES]),
            )


@dataclass(frozen=True)
class Substitute:
    """Replaces the records of a batch from `first` on, with the attributes of an aiokafka record."""

    first: int
    offset: int
    reason: str
    value: bytes
    key: None = None
    timestamp: int = 0
    timestamp_type: int = 0
    checksum: None = None
    headers: list[tuple[str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        which = (
            f"The record with the offset {self.first}"
            if self.first == self.offset
            else f"The records {self.first} to {self.offset}"
        )
        sentence = (
            f"{which} cannot be read: the batch on the log is damaged ({self.reason}). "
            "Let the producer send them again."
        )
        self.headers.append((UNREADABLE, sentence.encode()))
