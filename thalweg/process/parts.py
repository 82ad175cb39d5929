"""The life of a process made of parts: the death of one is the death of all, and stopping is bounded."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar

logger = logging.getLogger("thalweg")

STOP_TIMEOUT_S = 5.0


class Parts:
    """A subclass has `start`, which guards parts and adds their closers to `_closers`. Then `wait`, then `stop`."""

    finishes: ClassVar[str | None] = None
    """The part that ends in its own closer and not at once, because others hand their last work to it."""

    def __init__(self) -> None:
        self._closers: list[Callable[[], Awaitable[None]]] = []
        self._critical: list[asyncio.Task[None]] = []
        self._stopping = asyncio.Event()

    def _guard(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        task.set_name(name)
        self._critical.append(task)

    async def wait(self) -> None:
        """Until `stop` is asked for; raises what a part died of."""
        stopping = asyncio.ensure_future(self._stopping.wait())
        done, _ = await asyncio.wait([stopping, *self._critical], return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if task is not stopping:
                error = task.exception()
                raise error if error else RuntimeError(f"{task.get_name()} ended")

    def ask_to_stop(self) -> None:
        self._stopping.set()

    async def stop(self) -> None:
        """Finish what was accepted, save the indexes, release the lock; bounded."""
        for task in self._critical:
            if task.get_name() != self.finishes:
                task.cancel()
        for close in reversed(self._closers):
            try:
                await asyncio.wait_for(close(), STOP_TIMEOUT_S + 5)
            except Exception:
                logger.warning("stopping: %s failed", close, exc_info=True)
        self._closers.clear()
