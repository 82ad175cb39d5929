"""The parts of a running node, as one frozen value.

Its readers are status, control and spaces. The node stands on top and builds it; nothing here or below knows the node.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from mcp_ingress.credentials import Credentials
from mcp_ingress.door import Door
from mcp_ingress.services import Services
from mcp_ingress.socket import SocketServer
from processors.embedding.cache import with_cache
from processors.embedding.model import Embedder
from processors.embedding.time_limit import with_time_limit
from processors.frame.materialiser import Materialiser
from processors.frame.stage import StageRunner
from processors.memory.stages.embed import Embed
from processors.memory.vector_facts import VECTOR_STAGE
from storage.applied import AppliedPositions
from storage.database import Database
from storage.followers import Follower
from storage.reader import Reader
from storage.search.index_set import IndexSet
from storage.writer import Writer
from streams.clock import Clock
from streams.codec import encode
from streams.errors import LogUnavailable, Unavailable
from streams.events import Event
from streams.log.base import Log
from streams.positions import NOW, Freshness
from streams.topics import MEMORY
from thalweg.process.model import Models
from thalweg.settings import Settings
from thalweg.status.lag import Lag

YIELD_S = 5.0
"""How long work that nobody waits for lets new vectors go first; under a load that never ends it then goes on."""
FRESHNESS_WAIT_S = 30.0
RECORDS_WAIT_S = 10.0
"""How long the records of answered calls may take to the log when all that was accepted is asked for."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """What is derived from the log, what derives it, and how far that is."""

    database: Database
    writer: Writer
    reader: Reader
    indexes: IndexSet
    materialiser: Materialiser
    applied: AppliedPositions
    followed: list[str]
    """The topics that the store follows; the Collector's are added when they appear."""

    def indexes_ready(self) -> bool:
        """Whether every index answers by itself, not by exact search over the tables."""
        return self.indexes.wait_ready(0)


@dataclass(frozen=True, kw_only=True)
class Running:
    """Every part of a started node, and what is done with several of them together."""

    settings: Settings
    clock: Clock
    started_at: datetime
    up_since: float
    """The same moment as monotonic seconds."""
    log: Log
    store: Store
    models: Models
    embed: Embed
    runners: Sequence[StageRunner]
    """The stages that run here; none in a process that only stores or only answers."""
    lag: Lag
    services: Services
    door: Door
    socket: SocketServer
    http: dict[str, str | None] | None
    """Where the HTTP door listens and where its tokens are; None without that door."""
    credentials: Credentials | None
    """What these tokens give."""

    @property
    def embedder(self) -> Embedder | None:
        """The model of queries and of new memories; None without one."""
        return self.embed.embedder

    def use(self, embedder: Embedder) -> None:
        """Make this the model of queries and of new memories from now on."""
        self.embed.embedder = with_cache(embedder)
        self.services.embedder = with_time_limit(self.embed.embedder)

    async def publish(self, event: Event, topic: str) -> Freshness:
        """Put on the log what comes by no tool; what was spooled goes first. Raises LogUnavailable."""
        await self.services.spool.drain(self.log)  # else it would overtake it
        return Freshness.after(await self.log.publish([encode(topic, event)]))

    async def accept(self, event: Event, topic: str) -> Freshness:
        """Put on the log, or into the spool while it is down: what nobody would send again. Raises RecordRefused."""
        return (await self.services.append([encode(topic, event)])).freshness

    async def drain_spool(self) -> bool:
        """Put what was spooled on the log, in order; False while the log is down and something is left."""
        try:
            await self.services.spool.drain(self.log)
        except LogUnavailable:
            return False
        return True

    async def warm_views(self) -> None:
        """Bring what the toolsets keep of large namespaces up to date. A store that does not answer is left alone."""
        for part in list(self.services.parts.values()):
            if isinstance(part, Follower):
                with contextlib.suppress(Unavailable):
                    await self.store.reader.run(part.warm)
        inventory = self.door.inventory
        for name in inventory.served:
            if (warm := inventory.toolsets[name].warm) is not None:
                with contextlib.suppress(Unavailable):
                    await warm(self.services)

    async def yield_to_writes(self) -> None:
        """Let what was written be embedded first, for YIELD_S at most."""
        token = Freshness(await self.log.end_offsets([MEMORY.name]))
        await self.store.applied.wait(token, timeout_s=YIELD_S, stages=[VECTOR_STAGE], patient=True)

    async def has_reached(self, freshness: Any, stages: Sequence[str] = ()) -> bool:
        """Wait until a token is applied and processed by these stages; whether it was in time.

        `now` instead of a token means all that was accepted so far. What the log does not take from the spool is not in
        time, whatever the token: a spooled write has none. Raises Refused for what is not a token.
        """
        token = Freshness() if freshness == NOW else self.store.applied.token(freshness)
        has_all = await self.drain_spool()
        if freshness == NOW and has_all:  # else the log is away, and cannot be asked how far it reaches
            # of the calls that were answered: they are accepted too
            has_all = await self.door.publisher.flushed(RECORDS_WAIT_S)
            token = Freshness(await self.log.end_offsets(self.store.followed))
        wanted = token.merged(self.services.spool.followed)
        return await self.store.applied.wait(wanted, timeout_s=FRESHNESS_WAIT_S, stages=stages) and has_all
