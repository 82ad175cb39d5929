"""Work of minutes that the log asks for: it shows its progress, can be aborted, and resumes by itself.

Requests, ends and aborts are events, and the store says which of them holds. So a process that was killed resumes at
its next start, where the request is still there: a job keeps nothing of its own, and decides nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from storage.applied import AppliedPositions
from streams.errors import ThalwegError
from streams.log.base import Log, Outgoing
from streams.positions import Freshness
from streams.topics import DERIVED

logger = logging.getLogger(__name__)

POLL_S = 1.0
RETRY_S = 15.0
ABORT_POLL_S = 0.05
"""How often a job asks whether its work is still wanted: an abort takes effect within twice that."""
APPLY_WAIT_S = 30.0
Result = TypeVar("Result")


@dataclass
class Progress:
    """How far the work on `subject` is."""

    subject: str
    done: int
    total: int


class Job:
    """One kind of long work of a process. `look` does what is asked for at that moment, and returns when nothing is.

    A ThalwegError that `look` raises is the job's `problem`, and `look` is called again later.
    """

    def __init__(self, name: str, log: Log, applied: AppliedPositions, look: Callable[[], Awaitable[None]]) -> None:
        self._name, self._log, self._applied, self._look = name, log, applied, look
        self._wake = asyncio.Event()
        self.progress: Progress | None = None
        """Of the work at hand; None between two looks."""
        self.problem: str | None = None
        """What stands in the way, as a sentence."""

    def wake(self) -> None:
        """Have it look at once: something was asked for."""
        self.problem = None
        self._wake.set()

    async def run(self) -> None:
        """Look every second, until cancelled; first once all facts of former runs are applied."""
        is_caught_up = False
        while True:
            self._wake.clear()
            try:
                if not is_caught_up:
                    await self.wait_applied(Freshness(await self._log.end_offsets([DERIVED.name])))
                    is_caught_up = True
                await self._look()
                self.problem = None
            except ThalwegError as error:
                if self.problem != error.message:
                    logger.warning("%s: %s", self._name, error.message)
                self.problem = error.message
            finally:
                self.progress = None
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S if self.problem else POLL_S):
                    await self._wake.wait()

    async def while_wanted(
        self, work: Coroutine[Any, Any, Result], is_wanted: Callable[[], Awaitable[bool]]
    ) -> Result | None:
        """Do this work; what it returns, or None when it is no longer wanted and was cancelled."""
        task = asyncio.ensure_future(work)
        try:
            while await is_wanted():
                if task.done():
                    return task.result()
                await asyncio.wait({task}, timeout=ABORT_POLL_S)
            return None
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def publish(self, records: Sequence[Outgoing]) -> None:
        """Put records on the log; returns when they are applied."""
        if records:
            await self.wait_applied(Freshness.after(await self._log.publish(records, timeout_s=APPLY_WAIT_S)))

    async def wait_applied(self, token: Freshness, stages: Sequence[str] = ()) -> None:
        """Wait as long as it takes, until the token is applied and processed by these stages."""
        while not await self._applied.wait(token, timeout_s=APPLY_WAIT_S, stages=stages, patient=True):
            logger.info("%s: the store is behind", self._name)
