"""The newest records of each partition, in memory: who follows the log closely asks no file for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from streams.log.base import Record
from streams.positions import Partition

KEPT_BYTES = 128 * 1024
"""Of each partition so much at most."""


class TailCache:
    """What this process appended last, one unbroken run of offsets a partition. Used from one thread."""

    def __init__(self) -> None:
        self._kept: dict[Partition, deque[Record]] = {}
        self._sizes: dict[Partition, int] = {}

    def add(self, records: Iterable[Record]) -> None:
        """Records that are durable, in the order of each partition. Where others appended in between, what was kept before is let go."""
        for record in records:
            at = Partition(record.topic, record.partition)
            kept = self._kept.setdefault(at, deque())
            if kept and kept[-1].offset + 1 != record.offset:
                kept.clear()
                self._sizes[at] = 0
            kept.append(record)
            size = self._sizes.get(at, 0) + _size(record)
            while size > KEPT_BYTES and kept:
                size -= _size(kept.popleft())
            self._sizes[at] = size

    def since(self, at: Partition, offset: int, limit: int) -> list[Record]:
        """Up to `limit` records from an offset on; none when the first of them is not kept."""
        kept = self._kept.get(at)
        if not kept or not kept[0].offset <= offset <= kept[-1].offset:
            return []
        first = offset - kept[0].offset
        return list(islice(kept, first, first + limit))


def _size(record: Record) -> int:
    return len(record.value or b"") + len(record.key or b"") + 100 * len(record.headers)
