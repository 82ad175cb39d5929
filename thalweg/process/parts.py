"""The life of a process made of parts: the death of one is the death of all, and stopping is bounded."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, ClassVar

logger = logging.getLogger("thalweg")

STOP_TIMEOUT_S = 5.0
PART_TIMEOUT_S = 2 * STOP_TIMEOUT_S


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
        """Finish what was accepted, save the indexes, release the lock. A part that does not end in time is left."""
        for task in self._critical:
            if task.get_name() != self.finishes:
                task.cancel()
        for close in reversed(self._closers):
            await close_within(PART_TIMEOUT_S, close)
        self._closers.clear()


async def close_within(timeout_s: float, *closers: Callable[[], Awaitable[None]]) -> None:
    """Close parts at the same time. One that neither ends nor lets itself be cancelled is left to the process's end.

    A Faust app is such a part once its broker is gone: its consumer's thread dies before it says that it stopped.
    """
    tasks = {asyncio.ensure_future(close()): close for close in closers}
    if not tasks:
        return
    done, late = await asyncio.wait(tasks, timeout=timeout_s)
    for task in late:
        task.cancel()
        logger.warning("stopping: %s did not end within %g s and is left", _name(tasks[task]), timeout_s)
    for task in done:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.warning("stopping: %s failed", _name(tasks[task]), exc_info=error)


def _name(close: Callable[[], Awaitable[None]]) -> str:
    function = close.func if isinstance(close, functools.partial) else close
    return getattr(function, "__qualname__", str(function))
