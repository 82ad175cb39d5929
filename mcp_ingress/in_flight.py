"""Memories that this node put on the log and its store has not applied yet.

The answer of a write compares its text with them, so that it need not wait until the store has them.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple

from processors.memory.read.earlier import Memory
from storage.applied import AppliedPositions
from streams.positions import Freshness, Partition

MAX_MEMORIES = 256


class _Place(NamedTuple):
    at: Partition
    next_offset: int


class InFlight:
    """The memories of a node that are on the log and not applied, oldest first. For one thread, the event loop's."""

    def __init__(self) -> None:
        self._memories: OrderedDict[_Place, tuple[str, Memory]] = OrderedDict()
        self._forgotten = Freshness()
        """What was left out because there were too many: it is there once it is applied."""

    def add(self, namespace: str, written: Freshness, memory: Memory, applied: AppliedPositions) -> None:
        """Keep a memory whose record is the last one of each partition in `written`."""
        self._leave_out_applied(applied)
        for at, next_offset in written:
            self._memories[_Place(at, next_offset)] = namespace, memory
        while len(self._memories) > MAX_MEMORIES:
            place, _ = self._memories.popitem(last=False)
            self._forgotten = self._forgotten.merged(Freshness({place.at: place.next_offset}))

    def of(self, namespace: str, applied: AppliedPositions) -> list[Memory]:
        """The memories of a namespace, oldest first."""
        self._leave_out_applied(applied)
        return [memory for own, memory in self._memories.values() if own == namespace]

    def missing(self, token: Freshness) -> Freshness:
        """What has to be applied so that all of a token is applied or here."""
        absent = {at: offset for at, offset in token if _Place(at, offset) not in self._memories}
        return self._forgotten.merged(Freshness(absent))

    def _leave_out_applied(self, applied: AppliedPositions) -> None:
        for place in [place for place in self._memories if applied.next_offset(place.at) >= place.next_offset]:
            del self._memories[place]
