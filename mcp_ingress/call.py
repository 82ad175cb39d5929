"""What a tool may use: publish events, wait for them, read and search. It never writes a table and never decides.

A node has one `Gateway`; each tool call has a `Call`, which carries the caller and what the caller has seen.
"""

from __future__ import annotations

import asyncio
import functools
import math
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, cast

import duckdb
import numpy as np
import orjson

from mcp_ingress.request_times import RequestTimes
from mcp_ingress.spool import Spool
from processors.embedding.model import Embedder
from processors.embedding.query import encoded_query
from storage.applied import AppliedPositions
from storage.graph.projection import Projections
from storage.reader import Reader, StoredOutcome, count_documents_since, find_outcome, outcome_of
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchResult
from storage.search.search import prefetch, search
from streams.backlog import Backlog
from streams.clock import Clock
from streams.codec import check_size, encode
from streams.errors import EmbedderUnavailable, LogUnavailable, Unavailable
from streams.events import Event, wire_type
from streams.ids import derived_id
from streams.log.base import Log, Outgoing
from streams.positions import Freshness
from streams.topics import MEMORY

Result = TypeVar("Result")
PartType = TypeVar("PartType")
EMBED = "embed"
"""The stage that makes vectors."""
SOURCE = "thalweg:mcp"
MAX_VECTORS = 2000
"""Vectors of other texts that `Call.cosines` keeps in memory."""
ANSWER_MARGIN_S = 0.3
"""The end of a write's time that its waits leave free, so that it answers `pending` and never `timeout`."""


@dataclass(frozen=True)
class Limits:
    """How long a call waits, in seconds."""

    write_wait_s: float = 2.0
    publish_timeout_s: float = 4.0
    read_wait_s: float = 2.0
    vector_wait_s: float = 0.15
    """What a search by words and vectors waits for the latter, once the words are there."""


@dataclass
class Gateway:
    """The parts of the node that the door uses."""

    log: Log
    applied: AppliedPositions
    reader: Reader
    indexes: IndexSet
    embedder: Embedder | None
    spool: Spool
    clock: Clock
    limits: Limits = field(default_factory=Limits)
    projections: Projections | None = None
    vectors: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    parts: dict[type, Any] = field(default_factory=dict)
    """What toolsets need of the node for themselves, by type."""
    flush_records: Callable[[], Awaitable[Freshness]] | None = None
    """Puts the records of calls that the door still holds on the log; set by the door."""
    requests: RequestTimes = field(default_factory=RequestTimes)
    """When each request that has an id of its caller's was first made."""
    may_hold: Callable[[str, tuple[Any, ...]], bool] = lambda table, key: True
    """False of a table and a primary key that the store surely has no row for: then it is not asked for one."""
    recent: Callable[[str, tuple[Any, ...]], Mapping[str, Any] | None] = lambda table, key: None
    """A table's row under a primary key, if it was committed lately: then the store is not asked for it."""

    backlog: Callable[[], Backlog] = Backlog
    """What the store lacks of the log; asked at each read."""

    def part(self, kind: type[PartType]) -> PartType:
        """A toolset's own part; its default where the node was given none."""
        if kind not in self.parts:
            self.parts[kind] = kind()
        return cast(PartType, self.parts[kind])

    async def embedding_behind(self, namespace: str) -> int:
        """How many applied events of a namespace are not found by meaning yet, because their vectors are not there."""
        late = {} if self.embedder is None else self.applied.lagging(EMBED, MEMORY.name)
        return await self.reader.run(lambda cursor: count_documents_since(cursor, namespace, late)) if late else 0

    async def first_asked(self, namespace: str, request_id: str) -> datetime:
        """When this request was first made: now, unless it is a resend."""
        return await self.requests.first_asked(
            (namespace, request_id), self.clock.now(), self.reader, self.applied, self.limits.write_wait_s
        )


@dataclass
class Connection:
    """One MCP connection: what it last wrote, and the session it opened last and has not closed."""

    client: str | None = None
    last_writes: Freshness = field(default_factory=Freshness)
    open_session_id: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """Where a write went. `spooled`: the log was down, the events lie in the local spool and follow in order."""

    freshness: Freshness
    spooled: bool = False


@dataclass
class Call:
    """One tool call. `asked` is the caller's freshness token, else the connection's last writes."""

    gateway: Gateway
    connection: Connection
    namespace: str
    request_id: str
    asked: Freshness
    traceparent: str | None = None
    session_id: str | None = None
    deadline: float = math.inf
    """Monotonic time by which the tool has to have answered: no wait goes on beyond it."""
    is_named: bool = False
    """Whether the request id is the caller's own: then this may be a resend."""
    asked_at: datetime | None = None
    """When the request was first made, if its caller named it: a resend makes the same events, their time too."""
    embedding_behind: int = 0
    """Records of the caller's that the search has not found by meaning, because their vectors are not there yet."""
    is_stale: bool = False
    """Whether it read before everything was applied that its caller asked to see: what was missing may be there now."""

    def part(self, kind: type[PartType]) -> PartType:
        """The toolset's own part of the node."""
        return self.gateway.part(kind)

    @property
    def clock(self) -> Clock:
        return self.gateway.clock

    @property
    def wanted(self) -> Freshness:
        """What a read is to see: what the caller asked for, and spooled writes that have followed."""
        return self.asked.merged(self.gateway.spool.followed)

    def event(self, short_type: str, data: Mapping[str, Any], *, subject: str | None = None) -> Event:
        """An event of this call, at the time of the request.

        Its id is a pure function of namespace, request id, type and content.
        """
        kind = wire_type(short_type)
        content = orjson.dumps(data, option=orjson.OPT_SORT_KEYS).decode()
        extensions = {"traceparent": self.traceparent} if self.traceparent else {}
        identity = derived_id(self.namespace, self.request_id, kind, content)
        return Event(
            identity, SOURCE, kind, self.namespace, self.asked_at or self.clock.now(), data, subject, extensions
        )

    async def publish(self, *events: tuple[str, Event]) -> Published:
        """Put (topic, event) pairs on the log, in order; they are durable when this returns.

        When the log is down the events go to the synced local spool. Raises LogUnavailable when that fails too, and
        RecordRefused for a record that the log would never take, also while it is down.
        """
        records = [encode(topic, event) for topic, event in events]
        for record in records:
            check_size(record)
        self.gateway.log.check(records)
        published = await self._append(records)
        self.connection.last_writes = self.connection.last_writes.merged(published.freshness)
        return published

    async def _append(self, records: Sequence[Outgoing]) -> Published:
        spool = self.gateway.spool
        if not spool.is_empty:  # what was spooled goes first, so that order holds
            await spool.append(records)
            return Published(Freshness(), spooled=True)
        try:
            positions = await self.gateway.log.publish(records, timeout_s=self.gateway.limits.publish_timeout_s)
        except LogUnavailable:
            await spool.append(records)
            return Published(Freshness(), spooled=True)
        return Published(Freshness.after(positions))

    async def outcome(self, published: Published) -> StoredOutcome | None:
        """What was decided about this request. None when that was not known in `write_wait_s` (answer `pending`)."""
        limit = min(
            self.gateway.limits.write_wait_s, max(0.0, self.deadline - self.clock.monotonic() - ANSWER_MARGIN_S)
        )
        if published.spooled or not await self.applied(published.freshness, timeout_s=limit):
            return None
        self.is_stale = False  # it is decided, in the order of the log
        lately = self.gateway.recent("outcomes", (self.namespace, self.request_id))
        if lately is not None:
            return outcome_of(lately)
        return await self.read(functools.partial(find_outcome, namespace=self.namespace, request_id=self.request_id))

    async def applied(self, freshness: Freshness, *, timeout_s: float, stages: Sequence[str] = ()) -> bool:
        """Wait until the token is applied (with `stages`: processed by them, and that applied)."""
        return await self.gateway.applied.wait(freshness, timeout_s=timeout_s, stages=stages)

    def holds(self, freshness: Freshness) -> bool:
        """Whether the store has all of this and nothing is spooled: only then is a missing row surely unknown."""
        return self.gateway.spool.is_empty and self.gateway.applied.covers(freshness)

    async def own_records(self) -> Freshness:
        """How far the records of the calls until now reach, once they are on the log."""
        return await self.gateway.flush_records() if self.gateway.flush_records else Freshness()

    async def fresh(self, *stages: str, vectors: bool = False) -> bool:
        """Wait for what the caller asked to see; False means the answer must say `stale: true`.

        With stages, it waits until they have processed the part of the token that lies on their source. `vectors`: for
        a search that finds by words too; it waits a moment for vectors and counts those that are missing
        (`embedding_behind`).
        """
        has_all = self.gateway.spool.is_empty  # asked first: what follows meanwhile is in no token yet
        wanted, limits = self.wanted, self.gateway.limits
        waits = self.applied(wanted, timeout_s=limits.read_wait_s, stages=stages)
        is_applied = await (self._with_vectors(wanted, waits) if vectors else waits)
        self.is_stale = not (has_all and is_applied)
        if vectors or EMBED in stages:
            self.embedding_behind = await self.gateway.embedding_behind(self.namespace)
        return not self.is_stale

    async def _with_vectors(self, wanted: Freshness, words: Coroutine[Any, Any, bool]) -> bool:
        """Wait for the words, and a moment longer for the vectors; whether the words are there."""
        limits = self.gateway.limits
        longest = limits.read_wait_s + limits.vector_wait_s
        embedded = asyncio.ensure_future(self.applied(wanted, timeout_s=longest, stages=(EMBED,)))
        try:
            is_applied = await words
            await asyncio.wait({embedded}, timeout=limits.vector_wait_s if is_applied else 0)
        finally:
            embedded.cancel()
        return is_applied

    @property
    def lacks(self) -> dict[str, Any]:
        """What a read's answer lacks, beside `stale`: `embedding_behind` and `behind`; empty where nothing is."""
        unembedded = {"embedding_behind": self.embedding_behind} if self.embedding_behind else {}
        return unembedded | self.gateway.backlog().flag()

    async def read(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """Run a query on a reader thread. Raises Unavailable when the store is down."""
        return await self.gateway.reader.run(query)

    async def search(self, text: str, chosen: Filter, limit: int) -> SearchResult:
        """Hybrid search; by keywords only, and the result says so, while no embedder answers."""
        indexes, embedder = self.gateway.indexes, self.gateway.embedder
        if embedder is None:
            return await self.read(lambda cursor: search(cursor, indexes, Query(text, None, chosen, limit)))
        # on one core, the model on another
        keywords = self.read(lambda cursor: prefetch(cursor, indexes, text, chosen))
        prefetched, (vector, tokens, space) = await asyncio.gather(keywords, encoded_query(embedder, text))
        query = Query(text, vector, chosen, limit, tokens, space)
        return await self.read(lambda cursor: search(cursor, indexes, query, prefetched))

    async def projection(self, *, is_whole: bool = True) -> Path:
        """A graph projection of this namespace that has what the caller asked to see, as far as it is applied.

        Without `is_whole` it may lack what sessions inherited. Raises Unavailable.
        """
        projections = self.gateway.projections
        if projections is None:
            raise Unavailable("This node has no graph.")
        reached = self.gateway.applied
        asked = Freshness({at: min(offset, reached.next_offset(at)) for at, offset in self.wanted})
        found = await self.read(
            functools.partial(projections.find, namespace=self.namespace, asked=asked, is_whole=is_whole)
        )
        if isinstance(found, Path):
            return found
        return await asyncio.get_running_loop().run_in_executor(None, projections.build, found)

    async def cosines(self, text: str, others: Sequence[str]) -> list[float] | None:
        """How near `text` is in meaning to each of the others; None when no embedder answers."""
        embedder, known = self.gateway.embedder, self.gateway.vectors
        if embedder is None:
            return None
        space = embedder.info.space
        fresh = [other for other in dict.fromkeys(others) if (space, other) not in known]
        try:
            encoded = await asyncio.get_running_loop().run_in_executor(None, embedder.encode, [text, *fresh])
        except EmbedderUnavailable:
            return None
        found = known | {(space, other): vector for other, vector in zip(fresh, encoded[1:], strict=True)}
        if len(found) > MAX_VECTORS:
            known.clear()
        known.update({(space, other): found[space, other] for other in others})
        return [float(encoded[0] @ found[space, other]) for other in others]
