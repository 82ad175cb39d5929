"""A program that writes as a tool does while its log goes away and comes back, and marks each write that was
acknowledged.

`python -m tests.crash.power_writer HOME JOURNAL COUNT [WEAKNESS]`; a weakness is one thing that it does not sync.
"""

from __future__ import annotations

import asyncio
import os
import random
import sqlite3
import stat
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from mcp_ingress.call import Call, ClientConnection
from streams.errors import LogUnavailable
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Freshness, Position
from streams.topics import MEMORY, TOPICS
from tests.crash.power import mark
from tests.ingress.parts import services

NAMESPACE = "default"
LONGEST = 60_000
"""Characters of a text: enough of them for SQLite to check its write-ahead log in, more than once."""
ROUND, AWAY, BACK, DRAINED = 20, 8, 15, 18
"""Of this many writes, from which on the log is away, back, and the spool emptied."""
LIFE = 67
"""Writes after which everything is closed and opened again."""


class FallibleLog(SqliteLog):
    """The embedded log, which can be away."""

    is_away = False

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        if self.is_away:
            raise LogUnavailable("The log is away.")
        return await super().publish(records, timeout_s=timeout_s)


def text_of(number: int) -> str:
    """What is written under this number."""
    chance = random.Random(number)
    return f"{number} " + f"{chance.random():.16f}" * (chance.randrange(LONGEST) // 18)


async def write(home: Path, journal: Path, first: int, end: int) -> None:
    log = FallibleLog(home / "log.db")
    await log.start()
    await log.create_topics(TOPICS)
    parts = services(log, home)
    for number in range(first, end):
        log.is_away = AWAY <= number % ROUND < BACK
        if number % ROUND == DRAINED:
            await parts.spool.drain(log)
        call = Call(parts, ClientConnection(), NAMESPACE, f"r-{number}", Freshness())
        event = call.event("talos.journal.written", {"content": text_of(number), "category": "insight"})
        await call.publish((MEMORY.name, event))
        mark(journal, str(number))
    await log.stop()


def connect_without_sync(log: SqliteLog) -> sqlite3.ClientConnection:
    """The log's connection, acknowledging what may still be in memory only."""
    connection = _connect(log)
    connection.execute("PRAGMA synchronous=OFF")
    return connection


def _sync_of(is_skipped: Callable[[int], bool]) -> Callable[[int], None]:
    return lambda handle: None if is_skipped(os.fstat(handle).st_mode) else _fsync(handle)


_connect, _fsync = SqliteLog._connect, os.fsync
WEAKNESSES: dict[str, Callable[[], None]] = {
    "log": lambda: setattr(SqliteLog, "_connect", connect_without_sync),
    "spool": lambda: setattr(os, "fsync", _sync_of(stat.S_ISREG)),
    "names": lambda: setattr(os, "fsync", _sync_of(stat.S_ISDIR)),
}
"""What is not synced: the log's transactions, the spool's frames, the names of new files."""


def main(home: str, journal: str, count: str, *weakness: str) -> None:
    for name in weakness:
        WEAKNESSES[name]()
    for first in range(0, int(count), LIFE):
        asyncio.run(write(Path(home), Path(journal), first, min(int(count), first + LIFE)))


if __name__ == "__main__":
    main(*sys.argv[1:])
