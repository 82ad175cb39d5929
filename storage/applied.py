"""How far the store has come: the positions that readers can wait for.

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
    """Somebody who waits for a token, processed by these stages. Who is patient hastens no transaction; for whom a transaction was
    kept waiting in vain, none is again."""

    freshness: Freshness
    stages: frozenset[str]
    patient: bool
    woken: asyncio.Future[None]
    is_passed_over: bool = False

    @property
    def is_in_a_hurry(self) -> bool:
        return not self.patient and not self.woken.done()


class Awaited(Enum):
    """Whom a transaction would wake, of those in a hurry."""

    BY_NOBODY = auto()
    BY_SOME = auto()
    """Others, for whom none was kept waiting yet, would still wait."""
    BY_ALL = auto()


class AppliedPositions:
    """Next offset per partition, and per (stage, source partition). Used from one event loop only."""

    def __init__(self) -> None:
        self.partitions = {topic.name: topic.partitions for topic in TOPICS}
        """How many partitions each topic has that can be waited for."""
        self._applied: dict[Partition, int] = {}
        self._stages: dict[tuple[str, Partition], int] = {}
        self._waiters: list[_Waiter] = []
        self._asked: asyncio.Future[None] | None = None
        self._gathering: dict[asyncio.Future[None], frozenset[str]] = {}
        """Stages that gather, each with those for which it stops: done when somebody in a hurry begins to wait for one of them."""

    def token(self, given: Any) -> Freshness:
        """A caller's freshness token. Raises Refused for what is none, and for one that names what there is not."""
        return Freshness.from_json(given, self.partitions)

    def advance(self, applied: Mapping[Partition, int], stages: StagePositions) -> None:
        """Raise the positions (never lowers one) and wake whoever waited for them."""
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
        """Whether everything below the token is applied (and, what of it is on their source, processed by `stages`, and that applied).

        `applied` and `marks` are taken as reached too.
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
        """The next offset to be applied there; 0 where nothing was."""
        return self._applied.get(at, 0) if stage is None else self._stages.get((stage, at), 0)

    def lagging(self, stage: str, topic: str) -> dict[Partition, int]:
        """The partitions of a topic of which more is applied than the stage has processed, with the next offset of the stage."""
        applied = self._applied.items()
        return {
            at: self.next_offset(at, stage)
            for at, offset in applied
            if at.topic == topic and self.next_offset(at, stage) < offset
        }

    def all(self) -> dict[Partition, int]:
        return dict(self._applied)

    def stages(self) -> dict[tuple[str, Partition], int]:
        return dict(self._stages)

    async def wait(
        self, freshness: Freshness, *, timeout_s: float, stages: Collection[str] = (), patient: bool = False
    ) -> bool:
        """True once the token is covered, by these stages too; False when that took longer than `timeout_s`."""
        if self.covers(freshness, stages):
            return True
        waiter = _Waiter(freshness, frozenset(stages), patient, asyncio.get_running_loop().create_future())
        self._waiters.append(waiter)
        if not patient:
            self._hurry(stages)
        try:
            await asyncio.wait_for(waiter.woken, timeout_s)
        except TimeoutError:
            return False
        return True

    def _hurry(self, stages: Collection[str]) -> None:
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)
        for hurried, whose in self._gathering.items():
            if not hurried.done() and not whose.isdisjoint(stages):
                hurried.set_result(None)

    # --- for the stages: is there time to gather company

    def is_awaited(self, *stages: str) -> bool:
        """Whether somebody in a hurry waits for what one of these stages processes."""
        return any(waiter.is_in_a_hurry and not waiter.stages.isdisjoint(stages) for waiter in self._waiters)

    async def calm(self, stages: Collection[str], seconds: float) -> None:
        """Return after so long, at once when somebody in a hurry waits for one of the stages."""
        if not self.is_awaited(*stages):
            hurried = asyncio.get_running_loop().create_future()
            self._gathering[hurried] = frozenset(stages)
            try:
                await asyncio.wait({hurried}, timeout=seconds)
            finally:
                del self._gathering[hurried]

    # --- for the materialiser: when is a transaction worth its while

    def asked(self) -> asyncio.Future[None]:
        """Done when the next caller in a hurry begins to wait."""
        if self._asked is None or self._asked.done():
            self._asked = asyncio.get_running_loop().create_future()
        return self._asked

    def awaited(self, applied: Mapping[Partition, int], marks: StagePositions) -> Awaited:
        """Who would be woken if the positions were advanced so far."""
        would, others = False, False
        for waiter in self._waiters:
            if waiter.is_in_a_hurry:
                if self.covers(waiter.freshness, waiter.stages, applied, marks):
                    would = True
                else:
                    others |= not waiter.is_passed_over
        return Awaited.BY_NOBODY if not would else Awaited.BY_SOME if others else Awaited.BY_ALL

    def pass_over(self) -> None:
        """No transaction waits any longer for those who wait now."""
        for waiter in self._waiters:
            waiter.is_passed_over = True


def _raise(known: dict[Key, int], new: Mapping[Key, int]) -> None:
    for key, offset in new.items():
        if offset > known.get(key, -1):
            known[key] = offset
