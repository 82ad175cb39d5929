"""One call of a tool: its caller and what it may do. It publishes events, waits for them, reads and searches.

A tool never writes a table and never decides. A node has one `Services`; each call has a `Call` of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import math
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import orjson

from mcp_ingress.in_flight import InFlight
from mcp_ingress.services import PartType, Published, Services
from processors.embedding.query import encoded_query
from processors.memory.read.earlier import CHANGES_STAGE, Memory
from processors.memory.vector_facts import VECTOR_STAGE
from storage.graph.projection import Projections
from storage.reader import StoredOutcome, find_outcome, outcome_of
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.matches import DocumentMatches
from storage.search.search import Keywords, prefetch, prefetch_turns
from streams.clock import Clock
from streams.codec import encode
from streams.errors import EmbedderUnavailable, LogUnavailable, Unavailable
from streams.events import CONNECTION, Event, wire_type
from streams.ids import derived_id, uuid7
from streams.positions import Freshness
from streams.topics import INVOCATIONS, MEMORY, TELEMETRY

Result = TypeVar("Result")
Search = Callable[[duckdb.DuckDBPyConnection, IndexSet, Query, Keywords | None], Result]
Prepare = Callable[[duckdb.DuckDBPyConnection], Search[Result]]
SOURCE = "thalweg:mcp"
SEARCH_STAGES = (VECTOR_STAGE, CHANGES_STAGE)
"""What a search waits a moment for: vectors, and what memories change, so that the newer stands first."""
MAX_VECTORS = 2000
"""Vectors of other texts that `Call.cosines` keeps in memory."""
LEAVE_S = 0.2
"""How long at most a call waits for the log to take what it leaves on the topic of memories."""
ANSWER_MARGIN_S = 0.3
"""The end of a write's time that its waits leave free, so that it answers `pending` and never `timeout`."""


@dataclass
class ClientConnection:
    """One MCP connection: what it last wrote, and the session it opened last and has not closed."""

    id: str = field(default_factory=lambda: str(uuid7()))
    """On the log: what it writes without a session belongs together by it."""
    client: str | None = None
    last_writes: Freshness = field(default_factory=Freshness)
    unknown_writes: Freshness = field(default_factory=Freshness)
    """Those of its writes to memory that are not in flight: only the store says what they state."""
    open_session_id: str | None = None


@dataclass
class Call:
    """One tool call. `freshness` is the caller's freshness token, else the connection's last writes."""

    services: Services
    connection: ClientConnection
    namespace: str
    request_id: str
    freshness: Freshness
    traceparent: str | None = None
    session_id: str | None = None
    deadline: float = math.inf
    """Monotonic time by which the tool has to have answered: no wait goes on beyond it."""
    is_named: bool = False
    """Whether the request id is the caller's own: then this may be a resend."""
    is_read_only: bool = False
    """Whether its caller is served no tool that writes: then it leaves nothing on the topic of memories."""
    requested_at: datetime | None = None
    """When the request was first made, if its caller named it: a resend makes the same events, their time too."""
    embedding_behind: int = 0
    """Records of the caller's that the search has not found by meaning, because their vectors are not there yet."""
    is_stale: bool = False
    """Whether it read before everything was applied that its caller asked to see: what was missing may be there now."""

    def part(self, kind: type[PartType]) -> PartType:
        """The toolset's own part of the node."""
        return self.services.part(kind)

    @property
    def clock(self) -> Clock:
        return self.services.clock

    @property
    def read_token(self) -> Freshness:
        """What a read is to see: what the caller asked for, and spooled writes that have followed."""
        return self.freshness.merged(self.services.spool.followed)

    def event(self, short_type: str, data: Mapping[str, Any], *, subject: str | None = None) -> Event:
        """An event of this call, at the time of the request.

        Its id is a pure function of namespace, request id, type and content.
        """
        kind = wire_type(short_type)
        content = orjson.dumps(data, option=orjson.OPT_SORT_KEYS).decode()
        extensions = {CONNECTION: self.connection.id}
        if self.traceparent:
            extensions["traceparent"] = self.traceparent
        identity = derived_id(self.namespace, self.request_id, kind, content)
        return Event(
            identity, SOURCE, kind, self.namespace, self.requested_at or self.clock.now(), data, subject, extensions
        )

    def leave(self, short_type: str, data: Mapping[str, Any]) -> None:
        """Leave an event of this call on the topic of invocations, in the background: no answer waits for it."""
        self.services.leave_record(INVOCATIONS.name, self.event(short_type, data, subject=self.session_id))

    async def leave_write(self, short_type: str, data: Mapping[str, Any]) -> None:
        """Leave an event on the topic of memories; nothing of a caller that only reads.

        The connection's next calls see it, if the log takes it soon.
        """
        if self.is_read_only:
            return
        self.services.leave_record(MEMORY.name, self.event(short_type, data))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                reached = (await self.own_records()).on_topic(MEMORY.name)
                self.connection.last_writes = self.connection.last_writes.merged(reached)

    async def publish(self, *events: tuple[str, Event], states: Memory | None = None) -> Published:
        """Put (topic, event) pairs on the log, in order; they are durable when this returns.

        `states`: the memory that the only one on the topic of memories makes, for the answers of the next writes.
        When the log is down the events go to the synced local spool. Raises LogUnavailable when that fails too, and
        RecordRefused for a record that the log would never take, also while it is down.
        """
        records = [encode(topic, event) for topic, event in events]
        published = await self.services.append(records)
        self.connection.last_writes = self.connection.last_writes.merged(published.freshness)
        written = published.freshness.on_topic(MEMORY.name)
        if states is None:
            self.connection.unknown_writes = self.connection.unknown_writes.merged(written)
        else:
            self.services.part(InFlight).add(self.namespace, written, states, self.services.applied)
        return published

    async def outcome(self, published: Published) -> StoredOutcome | None:
        """What was decided about this request. None when that was not known in `write_wait_s` (answer `pending`)."""
        limit = min(
            self.services.limits.write_wait_s, max(0.0, self.deadline - self.clock.monotonic() - ANSWER_MARGIN_S)
        )
        if published.spooled or not await self.applied(published.freshness, timeout_s=limit):
            return None
        self.is_stale = False  # it is decided, in the order of the log
        lately = self.services.recent("outcomes", (self.namespace, self.request_id))
        if lately is not None:
            return outcome_of(lately)
        return await self.read(functools.partial(find_outcome, namespace=self.namespace, request_id=self.request_id))

    async def applied(self, freshness: Freshness, *, timeout_s: float, stages: Sequence[str] = ()) -> bool:
        """Wait until the token is applied (with `stages`: processed by them, and that applied)."""
        return await self.services.applied.wait(freshness, timeout_s=timeout_s, stages=stages)

    def holds(self, freshness: Freshness) -> bool:
        """Whether the store has all of this and nothing is spooled: only then is a missing row surely unknown."""
        return self.services.spool.is_empty and self.services.applied.covers(freshness)

    async def own_records(self) -> Freshness:
        """How far the records of the calls until now reach, once they are on the log."""
        return await self.services.flush_records() if self.services.flush_records else Freshness()

    async def fresh(self, *stages: str, vectors: bool = False, also: Sequence[str] = ()) -> bool:
        """Wait for what the caller asked to see; False means the answer must say `stale: true`.

        With stages, it waits until they have processed the part of the token that lies on their source. `vectors`: for
        a search that finds by words too; it waits a moment for vectors and for what they show to be changed, and counts
        the vectors that are missing (`embedding_behind`). `also`: stages that are waited for that moment too.
        """
        has_all = self.services.spool.is_empty  # asked first: what follows meanwhile is in no token yet
        token, limits = self.read_token, self.services.limits
        waits = self.applied(token, timeout_s=limits.read_wait_s, stages=stages)
        is_applied = await (self._with_vectors(token, waits, (*SEARCH_STAGES, *also)) if vectors else waits)
        self.is_stale = not (has_all and is_applied)
        if vectors or VECTOR_STAGE in stages:
            self.embedding_behind = await self.services.embedding_behind(self.namespace)
        return not self.is_stale

    async def _with_vectors(self, token: Freshness, words: Coroutine[Any, Any, bool], stages: Sequence[str]) -> bool:
        """Wait for the words, and a moment longer for these stages; whether the words are there."""
        limits = self.services.limits
        longest = limits.read_wait_s + limits.vector_wait_s
        embedded = asyncio.ensure_future(self.applied(token, timeout_s=longest, stages=stages))
        try:
            is_applied = await words
            await asyncio.wait({embedded}, timeout=limits.vector_wait_s if is_applied else 0)
        finally:
            embedded.cancel()
        return is_applied

    @property
    def gaps(self) -> dict[str, Any]:
        """What a read's answer lacks, beside `stale`: `embedding_behind` and `behind`; empty where nothing is."""
        unembedded = {"embedding_behind": self.embedding_behind} if self.embedding_behind else {}
        return unembedded | self.services.backlog().flag()

    async def find(self, query: Callable[[duckdb.DuckDBPyConnection], Result | None]) -> Result | None:
        """What an id names; None: nothing. Raises Unavailable when the store is down.

        Another connection may just have written it: what is not found is looked for again once the store has what is on
        the log now, at most `read_wait_s` later.
        """
        found = await self.read(query)
        if found is not None:
            return found
        limit = self.services.limits.read_wait_s
        with contextlib.suppress(LogUnavailable, TimeoutError):
            async with asyncio.timeout(limit):
                ends = Freshness(await self.services.log.end_offsets([MEMORY.name, TELEMETRY.name]))
            if not self.services.applied.covers(ends):
                await self.applied(ends, timeout_s=limit)
                return await self.read(query)
        return None

    async def read(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """Run a query on a reader thread. Raises Unavailable when the store is down."""

        def answer(cursor: duckdb.DuckDBPyConnection) -> Result:
            with self.services.indexes.answering():
                return query(cursor)

        return await self.services.reader.run(answer)

    async def score(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        """As `read`, for one call at a time, in their order.

        It is for what keeps the interpreter for milliseconds: eight callers get a tenth to a third more answers than
        with all of them at once (docs/adr/0015).
        """
        async with self.services.scoring:
            return await self.read(query)

    async def search(
        self,
        text: str,
        chosen: Filter,
        limit: int,
        run: Search[Result],
        *,
        pool: int | None = None,
        with_turns: bool = False,
    ) -> Result:
        """Hybrid search; by keywords only, and the result says so, while no embedder answers.

        `run`: the engine's search, or one that adds to it (`search_live` leaves out what has ended). `Query` says what
        `pool` is. With `with_turns`, what was said in captured sessions is searched too.
        """
        return await self.prepared_search(text, chosen, limit, lambda cursor: run, pool=pool, with_turns=with_turns)

    async def prepared_search(
        self,
        text: str,
        chosen: Filter,
        limit: int,
        prepare: Prepare[Result],
        *,
        pool: int | None = None,
        with_turns: bool = False,
    ) -> Result:
        """As `search`, with the search that `prepare` gives.

        `prepare` runs while the model reads the text: it reads what needs no vector.
        """
        indexes, embedder = self.services.indexes, self.services.embedder
        if embedder is None:
            of_words = Query(text, None, chosen, limit, pool=pool, with_turns=with_turns)
            return await self.score(lambda cursor: prepare(cursor)(cursor, indexes, of_words, None))
        # on one core, the model on another
        begun = self.read(lambda cursor: (prefetch(cursor, indexes, text, chosen), prepare(cursor)))
        of_turns = self._prefetch_turns(text, chosen, is_wanted=with_turns)
        (memories, run), turns, encoded = await asyncio.gather(begun, of_turns, encoded_query(embedder, text))
        query = Query(text, encoded.vector, chosen, limit, encoded.tokens, encoded.space, pool, with_turns=with_turns)
        return await self.score(lambda cursor: run(cursor, indexes, query, Keywords(memories, turns)))

    async def _prefetch_turns(self, text: str, chosen: Filter, *, is_wanted: bool) -> DocumentMatches | None:
        if not is_wanted:
            return None
        return await self.read(lambda cursor: prefetch_turns(self.services.indexes, text, chosen))

    async def projection(self, *, is_whole: bool = True) -> Path:
        """A graph projection of this namespace that has what the caller asked to see, as far as it is applied.

        Without `is_whole` it may lack what sessions inherited. Raises Unavailable.
        """
        projections: Projections | None = self.services.parts.get(Projections)
        if projections is None:
            raise Unavailable("This node has no graph.")
        reached = self.services.applied
        token = Freshness({at: min(offset, reached.next_offset(at)) for at, offset in self.read_token})
        found = await self.read(
            functools.partial(projections.find, namespace=self.namespace, token=token, is_whole=is_whole)
        )
        if isinstance(found, Path):
            return found
        return await asyncio.get_running_loop().run_in_executor(None, projections.build, found)

    async def cosines(self, text: str, others: Sequence[str]) -> list[float] | None:
        """How near `text` is in meaning to each of the others; None when no embedder answers."""
        embedder, known = self.services.embedder, self.services.vectors
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
