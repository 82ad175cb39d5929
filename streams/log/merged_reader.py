"""Two readers as one: what either brings is read, and neither waits for the other."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from streams.log.base import LogReader, Record

READING_S = 60.0


class MergedReader(LogReader):
    """Reads from both at once. What one brings while nobody reads, or while the other fails, is in the next read."""

    def __init__(self, *readers: LogReader) -> None:
        self._readers = readers
        self._reading: dict[LogReader, asyncio.Task[list[Record]]] = {}
        self._left: list[Record] = []

    async def read(self, *, timeout_s: float, max_records: int) -> list[Record]:
        if not self._left:
            self._left = await self._next(timeout_s, max_records)
        found, self._left = self._left[:max_records], self._left[max_records:]
        return found

    async def _next(self, timeout_s: float, max_records: int) -> list[Record]:
        for reader in self._readers:
            if reader not in self._reading:
                self._reading[reader] = asyncio.create_task(reader.read(timeout_s=READING_S, max_records=max_records))
        await asyncio.wait(self._reading.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        return self._brought()

    def _brought(self) -> list[Record]:
        """What lies ready. Raises what a reader raised when the other brings nothing; else that comes with the next read."""
        done = {reader: task for reader, task in self._reading.items() if task.done()}
        failed = {reader: task for reader, task in done.items() if task.exception() is not None}
        records = [
            record
            for reader, task in done.items()
            if reader not in failed
            for record in self._reading.pop(reader).result()
        ]
        if failed and not records:
            self._reading.pop(next(iter(failed))).result()
        return records

    async def close(self) -> None:
        reading: Sequence[asyncio.Task[list[Record]]] = list(self._reading.values())
        for task in reading:
            task.cancel()
        await asyncio.gather(*reading, return_exceptions=True)
        self._reading.clear()
        for reader in self._readers:
            await reader.close()
