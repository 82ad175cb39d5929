"""What the tools of a node may use: its log, its reader, its search, and how long they wait for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast

import numpy as np

from mcp_ingress.activity import Activity
from mcp_ingress.request_times import RequestTimes
from mcp_ingress.spool import Spool
from processors.embedding.model import Embedder
from processors.memory.vector_facts import VECTOR_STAGE
from storage.applied import AppliedPositions
from storage.reader import Reader, count_documents_since
from storage.search.index_set import IndexSet
from streams.backlog import Backlog
from streams.clock import Clock
from streams.codec import check_size
from streams.errors import LogUnavailable
from streams.events import Event
from streams.log.base import Log, Outgoing
from streams.positions import Freshness
from streams.topics import MEMORY

PartType = TypeVar("PartType")


@dataclass(frozen=True)
class Limits:
    """How long a call waits, in seconds."""

    write_wait_s: float = 2.0
    publish_timeout_s: float = 4.0
    read_wait_s: float = 2.0
    vector_wait_s: float = 0.15
    """What a search by words and vectors waits for the latter, once the words are there."""


@dataclass(frozen=True, slots=True)
class Published:
    """Where a write went. `spooled`: the log was down, the events lie in the local spool and follow in order."""

    freshness: Freshness
    spooled: bool = False


@dataclass
class Services:
    """The parts of the node that the door uses."""

    log: Log
    applied: AppliedPositions
    reader: Reader
    indexes: IndexSet
    embedder: Embedder | None
    spool: Spool
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    vectors: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    parts: dict[type, Any] = field(default_factory=dict)
    """What toolsets need of the node for themselves, by type."""
    flush_records: Callable[[], Awaitable[Freshness]] | None = None
    """Puts the records of calls that the door still holds on the log; set by the door."""
    leave_record: Callable[[str, Event], None] = lambda topic, event: None
    """Puts what a call leaves behind on the log in the background, a topic and an event; set by the door."""
    requests: RequestTimes = field(default_factory=RequestTimes)
    """When each request that has an id of its caller's was first made."""
    may_hold: Callable[[str, tuple[Any, ...]], bool] = lambda table, key: True
    """False of a table and a primary key that the store surely has no row for: then it is not asked for one."""
    recent: Callable[[str, tuple[Any, ...]], Mapping[str, Any] | None] = lambda table, key: None
    """A table's row under a primary key, if it was committed lately: then the store is not asked for it."""
    scoring: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by the call that scores what a search has found. Two at once would hand the interpreter to and fro."""
    backlog: Callable[[], Backlog] = Backlog
    """What the store lacks of the log; asked at each read."""

    def part(self, kind: type[PartType]) -> PartType:
        """A toolset's own part; its default where the node was given none."""
        if kind not in self.parts:
            self.parts[kind] = kind()
        return cast(PartType, self.parts[kind])

    def note_call(self, namespace: str, *, is_activity: bool) -> None:
        """Count a call as activity of its namespace, if it is some."""
        if is_activity:
            self.part(Activity).note(namespace)

    async def embedding_behind(self, namespace: str) -> int:
        """How many applied events of a namespace still lack their vectors.

        A search does not find these by meaning.
        """
        late = {} if self.embedder is None else self.applied.lagging(VECTOR_STAGE, MEMORY.name)
        return await self.reader.run(lambda cursor: count_documents_since(cursor, namespace, late)) if late else 0

    async def first_requested(self, namespace: str, request_id: str) -> datetime:
        """When this request was first made: now, unless it is a resend."""
        return await self.requests.first_requested(
            (namespace, request_id), self.clock.now(), self.reader, self.applied, self.limits.write_wait_s
        )

    async def append(self, records: Sequence[Outgoing]) -> Published:
        """Put records on the log, in order, or into the synced local spool while it is down.

        Raises LogUnavailable when the spool fails too, and RecordRefused for a record that the log would never take.
        """
        for record in records:
            check_size(record)
        self.log.check(records)
        if self.spool.is_empty:  # else what was spooled goes first, so that order holds
            with suppress(LogUnavailable):
                return Published(
                    Freshness.after(await self.log.publish(records, timeout_s=self.limits.publish_timeout_s))
                )
        await self.spool.append(records)
        return Published(Freshness(), spooled=True)
