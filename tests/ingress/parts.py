"""The door on a real log, without a store: what a node puts together, as far as these tests need it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, cast

from mcp_ingress.door import Door
from mcp_ingress.inventory import Inventory
from mcp_ingress.services import Services
from mcp_ingress.spool import Spool
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from streams.clock import Clock, SystemClock
from streams.codec import decode
from streams.errors import Unavailable
from streams.events import Event
from streams.log.base import Log
from streams.log.sqlite import SqliteLog
from streams.positions import Partition
from streams.topics import TOPICS
from tests.ingress.lines import WAIT_S
from tests.ingress.tools import demo_tools


class NoStore:
    """What a reader is while its store is down."""

    async def run(self, query: object) -> object:
        raise Unavailable("There is no store.")


class NoIndexes:
    """What a door asks of the indexes while a call runs: to give way, and not to hold up its thread."""

    def __init__(self) -> None:
        self.calls = 0

    @contextmanager
    def serving(self) -> Iterator[None]:
        self.calls += 1
        try:
            yield
        finally:
            self.calls -= 1

    def answering(self) -> nullcontext[None]:
        return nullcontext()


def services(log: Log, home: Path, clock: Clock | None = None) -> Services:
    """Services whose store parts are absent: tools that need none of them run on it."""
    reader, indexes = cast(Reader, NoStore()), cast(IndexSet, NoIndexes())
    return Services(log, AppliedPositions(), reader, indexes, None, Spool(home / "spool"), clock or SystemClock())


@asynccontextmanager
async def opened_log(path: Path) -> AsyncIterator[SqliteLog]:
    log = SqliteLog(path)
    await log.start()
    await log.create_topics(TOPICS)
    try:
        yield log
    finally:
        await log.stop()


@asynccontextmanager
async def opened_door(
    home: Path, inventory: Inventory | None = None, *, clock: Clock | None = None, **settings: Any
) -> AsyncIterator[Door]:
    """A door that serves the demonstration tools."""
    async with opened_log(home / "log.db") as log:
        door = Door(services(log, home, clock), inventory or demo_tools(), **settings)
        door.start()
        try:
            yield door
        finally:
            if door.publisher.waiting:
                await door.publisher.flush(WAIT_S)  # however slow the log is, and without waiting for company
            await door.stop()


async def events_on(log: SqliteLog, topic: str) -> list[Event]:
    """Everything on a topic, as the rest of the program will read it."""
    found: list[Event] = []
    for at in await log.end_offsets([topic]):
        for record in log.fetch(Partition(at.topic, at.partition), 0, 10_000):
            found += [logged.event for logged in decode(record)]
    return found
