"""Turns: which calls of one connection run, so that none of them is in another connection's way.

The calls of a connection wait for each other. A connection that asks faster than it is answered gets a small part of
the node's time while others call, and all of it otherwise.
"""

from __future__ import annotations

import asyncio

READS_AT_ONCE, WRITES_AT_ONCE = 2, 4
"""Calls of one connection that run at once. A write runs until what it wrote is processed."""
BACKLOG = 8
"""A connection with this many waiting calls asks faster than it is answered; agents make only a few calls at once."""
REST = 6
"""After each call such a connection rests for this many times as long as the call took, while others call."""


class Turns:
    """`at_once` calls run, the others wait in order."""

    def __init__(self, at_once: int) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waiting = 0

    async def take(self) -> None:
        """Wait until fewer than `at_once` run."""
        self._waiting += 1
        try:
            await self._free.acquire()
        finally:
            self._waiting -= 1

    def give(self, took_s: float, *, is_shared: bool) -> None:
        """End a call that ran for `took_s` seconds; `is_shared`: whether other connections call."""
        if is_shared and self._waiting >= BACKLOG:
            asyncio.get_running_loop().call_later(REST * took_s, self._free.release)
        else:
            self._free.release()
