"""Publishes the records of calls in the background, from a bounded queue.

An answer never waits for them. While the log is down the queue keeps them; once it is full, the newest are dropped and
counted.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from streams.codec import encode
from streams.errors import LogUnavailable
from streams.events import Event
from streams.log.base import Log
from streams.positions import Freshness

CAPACITY = 10_000
BATCH = 500
RETRY_S = 0.5
FLUSH_S = 1.0
GATHER_S = 0.1
"""No caller waits for these records: a short delay makes one append, and one transaction behind it, of several."""

logger = logging.getLogger(__name__)


class BackgroundPublisher:
    """`put` from the event loop; `start` before and `stop` after. Order is kept."""

    def __init__(self, log: Log, capacity: int = CAPACITY) -> None:
        self._log = log
        self._capacity = capacity
        self._queue: deque[tuple[str, Event]] = deque()
        self._filled = asyncio.Event()
        self._hurry = asyncio.Event()
        self._moved = asyncio.Event()
        self._taken = 0
        self._reached = Freshness()
        self._task: asyncio.Task[None] | None = None
        self.dropped = 0
        self.published = 0

    @property
    def waiting(self) -> int:
        """How many records are not on the log yet."""
        return len(self._queue)

    def put(self, topic: str, event: Event) -> None:
        """Queue one record; counts it as dropped when the queue is full."""
        if len(self._queue) >= self._capacity:
            self.dropped += 1
            return
        self._queue.append((topic, event))
        self._filled.set()

    def start(self) -> None:
        """Begin to publish; idempotent."""
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="invocations")

    async def stop(self, timeout_s: float = 1.0) -> None:
        """Publish the waiting records for at most `timeout_s`. Those that are left then are dropped and counted."""
        if self._task is None:
            return
        if not await self._moved_until(lambda: not self._queue, timeout_s):
            logger.warning("%d records of calls were not published: the log did not answer in time", len(self._queue))
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._task = None
        self.dropped += len(self._queue)
        self._queue.clear()

    async def flushed(self, timeout_s: float) -> bool:
        """Put the waiting records on the log at once; whether all of them were there in time."""
        last = self._taken + len(self._queue)
        self._hurry.set()
        return await self._moved_until(lambda: self._taken >= last, timeout_s)

    async def flush(self, timeout_s: float = FLUSH_S) -> Freshness:
        """Put the waiting records on the log at once. How far the log's records reach then, or when time is up."""
        await self.flushed(timeout_s)
        return self._reached

    async def _moved_until(self, is_done: Callable[[], bool], timeout_s: float) -> bool:
        """Wait while batches leave the queue. Whether `is_done` came true in time (the log may not answer at all)."""
        try:
            async with asyncio.timeout(timeout_s):
                while not is_done():
                    await self._moved.wait()
        except TimeoutError:
            return False
        return True

    async def _gather(self) -> None:
        try:
            async with asyncio.timeout(GATHER_S):
                await self._hurry.wait()
        except TimeoutError:
            pass
        self._hurry.clear()

    async def _run(self) -> None:
        while True:
            await self._filled.wait()
            await self._gather()
            batch = [self._queue[place] for place in range(min(BATCH, len(self._queue)))]
            try:
                positions = await self._log.publish([encode(topic, event) for topic, event in batch])
                self._reached = self._reached.merged(Freshness.after(positions))
                self.published += len(batch)
            except LogUnavailable:
                await asyncio.sleep(RETRY_S)
                continue
            except Exception:
                logger.exception("%d records of calls cannot be published", len(batch))
                self.dropped += len(batch)
            for _ in batch:
                self._queue.popleft()
            self._taken += len(batch)
            moved, self._moved = self._moved, asyncio.Event()
            moved.set()
            if not self._queue:
                self._filled.clear()
