"""Snapshots for analysts' SQL, and what each lacks; the control socket and HTTP both use them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from storage.sql.snapshot import Snapshot, Snapshots
from streams.backlog import Backlog
from thalweg.process.running import Running


class AnalystSnapshots:
    """One for each node: it remembers what the store lacked when the last snapshot was made."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._snapshots = Snapshots(running.store.database)
        self._backlog = Backlog()

    async def get(self, max_age_s: float, freshness: Any = None) -> tuple[Snapshot, dict[str, Any]]:
        """A snapshot at most this many seconds old, or made once `freshness` (a token or `now`) is applied.

        With it what it lacks: `stale` when that was not in time, `behind` (what the store lacked of the log when the
        snapshot was made). Raises Refused for what is not a token.
        """
        is_stale = freshness is not None and not await self._running.has_reached(freshness)
        backlog = self._running.lag.backlog()
        found = await asyncio.to_thread(self._snapshots.get, max_age_s if freshness is None else 0.0)
        if found.age_s == 0.0:  # made just now
            self._backlog = backlog
        return found, ({"stale": True} if is_stale else {}) | self._backlog.flag()

    async def copy_to(self, file: Path) -> int:
        """Copy the public tables and views to a DuckDB file; its size in bytes."""
        return await asyncio.to_thread(self._snapshots.snapshot_to, file)
