"""Several readers as one: each record is passed on as it comes, and no reader waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streams.log.base import LogReader, Record

READ_S = 60.0
"""How long one read of a reader may take; it goes on in the background while the caller's own time runs out."""


class MergedReader(LogReader):
    """Reads from all at once. Records that come between two calls, or while another fails, are in the next read."""

    def __init__(self, *readers: LogReader) -> None:
        self._readers = readers
        self._reads: dict[LogReader, asyncio.Task[list[Record]]] = {}
        self._buffer: list[Record] = []

    async def read(self, *, timeout_s: float, max_records: int) -> list[Record]:
        if not self._buffer:
            self._buffer = await self._next(timeout_s, max_records)
        found, self._buffer = self._buffer[:max_records], self._buffer[max_records:]
        return found

    async def _next(self, timeout_s: float, max_records: int) -> list[Record]:
        for reader in self._readers:
            if reader not in self._reads:
                self._reads[reader] = asyncio.create_task(reader.read(timeout_s=READ_S, max_records=max_records))
        await asyncio.wait(self._reads.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return self._finished()

    def _finished(self) -> list[Record]:
        """The records that are ready. A reader's error is raised when no other has records, else in the next read."""
        done = {reader: task for reader, task in self._reads.items() if task.done()}
        failed = {reader: task for reader, task in done.items() if task.exception() is not None}
        records = [
            record
            for reader, task in done.items()
            if reader not in failed
            for record in self._reads.pop(reader).result()
        ]
        if failed and not records:
            self._reads.pop(next(iter(failed))).result()
        return records

    async def close(self) -> None:
        reads: Sequence[asyncio.Task[list[Record]]] = list(self._reads.values())
        for task in reads:
            task.cancel()
        await asyncio.gather(*reads, return_exceptions=True)
        self._reads.clear()
        for reader in self._readers:
            await reader.close()
