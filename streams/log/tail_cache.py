"""The tail of each partition, in memory: a reader that follows the log closely never queries the file."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from streams.log.base import Record
from streams.positions import Partition

MAX_BYTES = 128 * 1024
"""At most this many bytes of each partition are cached."""


class TailCache:
    """The records that this process appended last, one run of offsets per partition; for one thread."""

    def __init__(self) -> None:
        self._tails: dict[Partition, deque[Record]] = {}
        self._sizes: dict[Partition, int] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Add durable records, in the order of each partition. After another process's records the run restarts."""
        for record in records:
            at = Partition(record.topic, record.partition)
            tail = self._tails.setdefault(at, deque())
            if tail and tail[-1].offset + 1 != record.offset:
                tail.clear()
                self._sizes[at] = 0
            tail.append(record)
            size = self._sizes.get(at, 0) + _size(record)
            while size > MAX_BYTES and tail:
                size -= _size(tail.popleft())
            self._sizes[at] = size

    def since(self, at: Partition, offset: int, limit: int) -> list[Record]:
        """Up to `limit` records from an offset on; none when the first of them is not cached."""
        tail = self._tails.get(at)
        if not tail or not tail[0].offset <= offset <= tail[-1].offset:
            return []
        first = offset - tail[0].offset
        return list(islice(tail, first, first + limit))


def _size(record: Record) -> int:
    return len(record.value or b"") + len(record.key or b"") + 100 * len(record.headers)
