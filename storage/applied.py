"""How far the store has come: the positions that readers can wait for.

The materialiser calls `advance` on the event loop after the transaction is committed and the indexes follow;
readers call `wait`. Nothing here is durable: at start the positions come from DuckDB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TypeVar

from streams.positions import Freshness, Partition

Key = TypeVar("Key")
StagePositions = Mapping[tuple[str, Partition], int]


class AppliedPositions:
    """Next offset per partition, and per (stage, source partition). Used from one event loop only."""

    def __init__(self) -> None:
        self._applied: dict[Partition, int] = {}
        self._stages: dict[tuple[str, Partition], int] = {}
        self._waiters: list[tuple[Freshness, str | None, asyncio.Future[None]]] = []

    def advance(self, applied: Mapping[Partition, int], stages: StagePositions) -> None:
        """Raise the positions (never lowers one) and wake whoever waited for them."""
        _raise(self._applied, applied)
        _raise(self._stages, stages)
        still = []
        for freshness, stage, waiter in self._waiters:
            if self.covers(freshness, stage):
                if not waiter.done():
                    waiter.set_result(None)
            elif not waiter.done():
                still.append((freshness, stage, waiter))
        self._waiters = still

    def covers(self, freshness: Freshness, stage: str | None = None) -> bool:
        """Whether everything below the token is applied (and, with `stage`, processed by it and that applied)."""
        return all(self.next_offset(at, stage) >= offset for at, offset in freshness)

    def next_offset(self, at: Partition, stage: str | None = None) -> int:
        """The next offset to be applied there; 0 where nothing was."""
        return self._applied.get(at, 0) if stage is None else self._stages.get((stage, at), 0)

    def all(self) -> dict[Partition, int]:
        return dict(self._applied)

    def stages(self) -> dict[tuple[str, Partition], int]:
        return dict(self._stages)

    async def wait(self, freshness: Freshness, *, timeout_s: float, stage: str | None = None) -> bool:
        """True once the token is covered; False when that took longer than `timeout_s`."""
        if self.covers(freshness, stage):
            return True
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append((freshness, stage, waiter))
        try:
            await asyncio.wait_for(waiter, timeout_s)
        except TimeoutError:
            return False
        return True


def _raise(known: dict[Key, int], new: Mapping[Key, int]) -> None:
    for key, offset in new.items():
        if offset > known.get(key, -1):
            known[key] = offset
