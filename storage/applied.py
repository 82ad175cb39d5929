"""How far the store has come: the applied positions, and the waiters for them.

The materialiser calls `advance` on the event loop after the transaction is committed and the indexes follow;
readers call `wait`. Nothing here is durable: at start the positions come from DuckDB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar

from streams.positions import Freshness, Partition
from streams.topics import MEMORY, TOPICS

Key = TypeVar("Key")
StagePositions = Mapping[tuple[str, Partition], int]
NO_POSITIONS: Mapping[Partition, int] = {}
NO_STAGES: StagePositions = {}


@dataclass(slots=True, eq=False)
class _Waiter:
    """A call that waits for a token, processed by these stages.

    `patient`: never cuts a batch short. `has_grace`: a batch may still be delayed so that it covers this waiter too;
    once one was delayed in vain, no other is.
    """

    freshness: Freshness
    stages: frozenset[str]
    patient: bool
    woken: asyncio.Future[None]
    has_grace: bool = True

    @property
    def is_urgent(self) -> bool:
        return not self.patient and not self.woken.done()


class Coverage(Enum):
    """How many of the urgent waiters a transaction would satisfy."""

    NONE = auto()
    SOME = auto()
    """A waiter that still has its grace would go on waiting."""
    ALL = auto()


class AppliedPositions:
    """Next offset per partition, and per (stage, source partition). Used from one event loop only."""

    def __init__(self) -> None:
        self.partitions = {topic.name: topic.partitions for topic in TOPICS}
        """The number of partitions of each topic that a token may name."""
        self._applied: dict[Partition, int] = {}
        self._stages: dict[tuple[str, Partition], int] = {}
        self._waiters: list[_Waiter] = []
        self._urgent_wait: asyncio.Future[None] | None = None
        self._lingering: dict[asyncio.Future[None], frozenset[str]] = {}
        """A future for each batch that lingers, with the stages whose urgent waiters end that."""

    def token(self, given: Any) -> Freshness:
        """Read a caller's freshness token. Raises Refused when it is malformed or names an unknown partition."""
        return Freshness.from_json(given, self.partitions)

    def advance(self, applied: Mapping[Partition, int], stages: StagePositions) -> None:
        """Raise the positions (it never lowers one) and wake the waiters that they cover."""
        _raise(self._applied, applied)
        _raise(self._stages, stages)
        still = []
        for waiter in self._waiters:
            if self.covers(waiter.freshness, waiter.stages):
                if not waiter.woken.done():
                    waiter.woken.set_result(None)
            elif not waiter.woken.done():
                still.append(waiter)
        self._waiters = still

    def covers(
        self,
        freshness: Freshness,
        stages: Collection[str] = (),
        applied: Mapping[Partition, int] = NO_POSITIONS,
        marks: StagePositions = NO_STAGES,
    ) -> bool:
        """Whether all below the token is applied, processed by these stages, and their facts applied.

        Stages count on the memory topic only. `applied` and `marks` are positions to take as reached besides.
        """
        return all(
            max(self.next_offset(at), applied.get(at, 0)) >= offset
            and (
                at.topic != MEMORY.name
                or all(max(self.next_offset(at, stage), marks.get((stage, at), 0)) >= offset for stage in stages)
            )
            for at, offset in freshness
        )

    def next_offset(self, at: Partition, stage: str | None = None) -> int:
        """The next offset to be applied there; 0 before the first."""
        return self._applied.get(at, 0) if stage is None else self._stages.get((stage, at), 0)

    def lagging(self, stage: str, topic: str) -> dict[Partition, int]:
        """The partitions of a topic where the stage is behind the store, with the stage's next offset."""
        applied = self._applied.items()
        return {
            at: self.next_offset(at, stage)
            for at, offset in applied
            if at.topic == topic and self.next_offset(at, stage) < offset
        }

    def positions(self) -> dict[Partition, int]:
        return dict(self._applied)

    def stage_positions(self) -> dict[tuple[str, Partition], int]:
        return dict(self._stages)

    async def wait(
        self, freshness: Freshness, *, timeout_s: float, stages: Collection[str] = (), patient: bool = False
    ) -> bool:
        """Wait until the token is covered, by these stages too; False when that takes longer than `timeout_s`."""
        if self.covers(freshness, stages):
            return True
        waiter = _Waiter(freshness, frozenset(stages), patient, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        if not patient:
            self._end_lingering(stages)
        try:
            await asyncio.wait_for(waiter.woken, timeout_s)
        except TimeoutError:
            return False
        return True

    def _end_lingering(self, stages: Collection[str]) -> None:
        if self._urgent_wait is not None and not self._urgent_wait.done():
            self._urgent_wait.set_result(None)
        for ended, needed in self._lingering.items():
            if not ended.done() and not needed.isdisjoint(stages):
                ended.set_result(None)

    # --- for the stages: may a batch linger

    def has_urgent_waiter(self, *stages: str) -> bool:
        """Whether an urgent waiter needs one of these stages."""
        return any(waiter.is_urgent and not waiter.stages.isdisjoint(stages) for waiter in self._waiters)

    async def linger(self, stages: Collection[str], seconds: float) -> None:
        """Return after this time, or as soon as an urgent waiter needs one of the stages."""
        if not self.has_urgent_waiter(*stages):
            ended = asyncio.get_running_loop().create_future()
            self._lingering[ended] = frozenset(stages)
            try:
                await asyncio.wait({ended}, timeout=seconds)
            finally:
                del self._lingering[ended]

    # --- for the materialiser: when does a transaction pay off

    def urgent_wait(self) -> asyncio.Future[None]:
        """Done when the next urgent waiter begins to wait."""
        if self._urgent_wait is None or self._urgent_wait.done():
            self._urgent_wait = asyncio.get_running_loop().create_future()
        return self._urgent_wait

    def coverage(self, applied: Mapping[Partition, int], marks: StagePositions) -> Coverage:
        """How many of the urgent waiters would be woken if the positions were advanced this far."""
        satisfied, waiting = False, False
        for waiter in self._waiters:
            if waiter.is_urgent:
                if self.covers(waiter.freshness, waiter.stages, applied, marks):
                    satisfied = True
                else:
                    waiting |= waiter.has_grace
        return Coverage.NONE if not satisfied else Coverage.SOME if waiting else Coverage.ALL

    def end_grace(self) -> None:
        """Delay no further transaction for the current waiters."""
        for waiter in self._waiters:
            waiter.has_grace = False


def _raise(known: dict[Key, int], new: Mapping[Key, int]) -> None:
    for key, offset in new.items():
        if offset > known.get(key, -1):
            known[key] = offset
