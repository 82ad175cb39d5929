"""The node: puts the parts together, watches over them, and ends with a sentence when one of them dies."""

from __future__ import annotations

import asyncio
import functools
import logging
import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mcp_ingress.analysts import SqlEndpoint
from mcp_ingress.calls import Door
from mcp_ingress.gateway import Gateway, Limits
from mcp_ingress.http import HttpServer
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from mcp_ingress.server import build_server
from mcp_ingress.socket import SocketServer
from mcp_ingress.spool import Spool
from mcp_ingress.toolset import Setup
from processors.embedding.guarded import guarded
from processors.embedding.load import load_embedder
from processors.embedding.model import Embedder
from processors.embedding.remembered import remembering
from processors.frame.materialiser import Materialiser
from processors.frame.stage import Stage, StageRunner
from processors.memory.stages.embed import Embed
from processors.talos.read.graph_source import read_graph
from processors.talos.stages.consolidate import Consolidate
from processors.talos.stages.dedup import Dedup
from processors.talos.stages.extract import Extract
from processors.talos.stages.patterns import Patterns
from processors.telemetry.mirror import TelemetryMirror
from processors.valence.stages.tensions import Tensions
from processors.valence.timers.age_patterns import age_patterns
from storage.applied import AppliedPositions
from storage.database import Database
from storage.graph.projection import Projections
from storage.migrate import migrate
from storage.reader import Reader
from storage.search.engine import SearchIndexes
from storage.sql.snapshot import Snapshot, Snapshots
from storage.writer import Writer
from streams.backlog import Backlog
from streams.clock import Clock, SystemClock
from streams.codec import encode
from streams.errors import EmbedderUnavailable, LogUnavailable
from streams.events import Event
from streams.log import open_log
from streams.positions import NOW, Freshness
from streams.topics import MEMORY, OTLP_TOPICS, with_partitions
from thalweg import __version__
from thalweg.control.requests import handle
from thalweg.control.server import ControlServer
from thalweg.paths import control_path, make_home, socket_path
from thalweg.process.embedder_names import check_dimension
from thalweg.process.housekeeping import clear, narrow
from thalweg.process.http_door import describe, http_token
from thalweg.process.parts import Parts
from thalweg.process.stage_apps import run_stages
from thalweg.settings import Settings
from thalweg.spaces.spaces import Spaces, live_space
from thalweg.status.health import Health
from thalweg.terminal.topics import missing_otlp_topics

logger = logging.getLogger("thalweg")

STAGES: tuple[type[Stage], ...] = (Extract, Embed, Dedup, Patterns, Consolidate, Tensions)
MAINTAIN_S = 1.0
LOOK_S = 5.0
FRESHNESS_WAIT_S = 30.0
RECORDS_WAIT_S = 10.0
"""How long the records of the calls that were answered may take to the log for one who asks for all that was accepted."""


class Node(Parts):
    """One process: log, stages, store and door, as the role asks. `start`, then `wait`, then `stop`."""

    finishes = "materialiser"

    def __init__(self, settings: Settings, clock: Clock | None = None, *, stages: bool = True) -> None:
        super().__init__()
        self.settings = settings
        self.with_stages = stages and settings.role != "ingress"
        self.clock = clock or SystemClock()
        self.log = open_log(settings.broker_url)
        self.topics = with_partitions(settings.partitions)
        self.followed = [topic.name for topic in self.topics]
        self.applied = AppliedPositions()
        self.runners: list[StageRunner] = []
        self._snapshot_lacks = Backlog()
        self.elsewhere: list[type[Stage]] = list(STAGES) if settings.role == "ingress" else []
        self.http: dict[str, str | None] | None = None

    async def start(self) -> None:
        """Bring the parts up in the order of their dependence. Raises a ThalwegError with one sentence."""
        settings = self.settings
        make_home(settings.home)
        narrow(settings.home, settings.broker_url)
        self.started_at = self.clock.now()
        loading = asyncio.ensure_future(asyncio.to_thread(self._load_embedder))  # half a second, beside the rest
        try:
            await self._open_store()
            await self._open_log()
        finally:
            self.embedder = await loading
        clear(settings.home)
        await self._take_live_embedder()
        check_dimension(os.environ, self.embedder.info.dim if self.embedder else None)
        await self._open_indexes()
        self.followed = await self._materialised_topics()
        mirror = TelemetryMirror(settings.home / "telemetry", self.clock)
        self.materialiser = Materialiser(
            self.log, self.followed, self.writer, self.indexes, self.applied, self.clock, settings.namespace, mirror
        )
        self._guard("materialiser", self.materialiser.run())
        self._closers.append(self._close_materialiser)
        self.embed = Embed(self.embedder)
        if self.with_stages:
            self.runners = [StageRunner(stage, self.log, self.clock) for stage in self._stages()]
        await self._open_door()
        self._start_stages()  # after the door: a client that started this node waits for its first answer
        self._guard("maintenance", self._maintain())
        self._guard("topics", self._look_for_topics())
        self._guard("spool", self._drain_spool())
        self._guard("spaces", self.spaces.run())

    async def _open_store(self) -> None:
        settings = self.settings
        self.database = Database(settings.home)
        self._closers.append(self._close_database)
        migrate(self.database.cursor(), self.clock.now())
        self.writer = Writer(self.database)
        self.reader = Reader(self.database)
        self._closers.append(self._close_store)
        self.snapshots = Snapshots(self.database)

    def _load_embedder(self, name: str | None = None) -> Embedder | None:
        settings = self.settings
        path = Path(settings.model_path) if settings.model_path else None
        models = settings.home / "models"
        return remembering(
            load_embedder(name or settings.embedder, cache_dir=models, model_path=path, threads=settings.embed_threads)
        )

    async def _take_live_embedder(self) -> None:
        """The store's live space says which model answers; the setting is for a store that has none yet, or says `none`.

        When that model does not load, the setting's embeds what is new, `spaces` says what is wrong, and re-embedding mends it.
        """
        live = live_space(self.database.cursor())
        if live is None or self.embedder is None or self.embedder.info.space == live["space"]:
            return
        try:
            chosen = await asyncio.to_thread(self._load_embedder, live["embedder"])
        except EmbedderUnavailable as error:
            logger.warning("the model of the live space %s does not load: %s", live["space"], error.message)
            return
        if chosen is not None and chosen.info.space == live["space"]:
            self.embedder = chosen

    def use(self, embedder: Embedder) -> None:
        """The model of queries and of new memories from now on."""
        self.embedder = self.embed.embedder = remembering(embedder)
        self.gateway.embedder = guarded(self.embedder)

    async def _open_indexes(self) -> None:
        info = self.embedder.info if self.embedder else None
        self.indexes = SearchIndexes(self.settings.home / "indexes", self.database.cursor, info)
        self.indexes.save_s = self.settings.index_save_s
        self._closers.append(self._close_indexes)
        await asyncio.to_thread(self.indexes.open, self._covered())

    def _covered(self) -> dict[str, int]:
        return {f"{at.topic}/{at.partition}": offset for at, offset in self.writer.positions().items()}

    async def _open_log(self) -> None:
        await self.log.start()
        self._closers.append(self.log.stop)
        await self.log.create_topics(self.topics)
        self.applied.partitions = {topic.name: topic.partitions for topic in self.topics}
        self.inherited = Freshness(await self.log.end_offsets([MEMORY.name]))

    async def _materialised_topics(self) -> list[str]:
        return [topic.name for topic in self.topics] + await self._otlp_topics()

    async def _otlp_topics(self) -> list[str]:
        """Those of the Collector's topics that exist: its exporter makes them with its first record."""
        if not self.settings.otlp_topics:
            return []
        existing = Counter(at.topic for at in await self.log.end_offsets(OTLP_TOPICS))
        self.applied.partitions.update(existing)
        if absent := missing_otlp_topics(existing):
            logger.warning("%s.", absent)
        return [name for name in OTLP_TOPICS if name in existing]

    async def _look_for_topics(self) -> None:
        """The Collector may begin after the node: look until all its topics are followed."""
        while self.settings.otlp_topics and not set(OTLP_TOPICS) <= set(self.followed):
            await asyncio.sleep(LOOK_S)
            try:
                ends = await self.log.end_offsets(OTLP_TOPICS)
            except LogUnavailable:
                continue
            self.applied.partitions.update(Counter(at.topic for at in ends))
            self.materialiser.follow(ends)
            self.followed += sorted({at.topic for at in ends} - set(self.followed))
        await asyncio.Event().wait()  # a guarded part that ends would end the node

    def _stages(self) -> list[Stage]:
        return [
            Extract(self.applied),
            self.embed,
            Dedup(self.reader, self.indexes, self.applied),
            Patterns(self.reader, self.applied, self.embed),
            Consolidate(self.reader, self.applied, self.embed),
            Tensions(self.reader, self.indexes, self.applied),
        ]

    def _start_stages(self) -> None:
        """Start the Faust app."""
        if self.with_stages:
            self._guard("stages", run_stages(self.settings, self.log, self.runners, self._closers))
            self._guard("ageing", age_patterns(self.reader, self.log, self.clock))

    async def _open_door(self) -> None:
        settings = self.settings
        self.gateway = Gateway(
            log=self.log,
            applied=self.applied,
            reader=self.reader,
            indexes=self.indexes,
            embedder=guarded(self.embedder),
            spool=Spool(settings.home / "spool"),
            clock=self.clock,
            limits=Limits(write_wait_s=settings.write_wait_s, vector_wait_s=settings.vector_wait_s),
            projections=Projections(settings.home / "graph", read_graph),
            parts=find_tools().parts(Setup(settings, os.environ, self.embedder)),
        )
        chosen = [name.strip() for name in settings.toolsets.split(",") if name.strip()]
        inventory = find_tools().select(chosen or None, read_only=settings.read_only)
        resources = find_resources().select(inventory.served)
        self.door = Door(
            self.gateway, inventory, resources, namespace=settings.namespace, rate_limit=settings.rate_limit
        )
        self.gateway.requests.inherited = self.inherited
        self.gateway.may_hold, self.gateway.recent = self.writer.may_hold, self.writer.recent
        self.gateway.requests.may_be_decided = lambda request: self.writer.may_hold("outcomes", request)
        self.door.start()
        self._closers.append(self.door.stop)
        self.health = Health(self)
        self.gateway.backlog = self.health.backlog
        self.spaces = Spaces(self)
        server = build_server(self.door, __version__)
        self.socket = SocketServer(socket_path(settings.home), server, self.clock, self.door.limits)
        self.control = ControlServer(control_path(settings.home), functools.partial(handle, self))
        if settings.http:
            await self._open_http()
        for door in (self.control, self.socket):  # last: who connects finds everything ready, the other door too
            self._closers.append(door.stop)
            door.listen()
        await self.control.start()
        await self.socket.start()

    async def _open_http(self) -> None:
        settings = self.settings
        host, port = settings.http_address
        token = http_token(settings, host)
        http = HttpServer(
            build_server(self.door, __version__),
            replace(self.door.local, name="http"),
            self.door.limits,
            host=host,
            port=port,
            token=token.value,
            token_place=token.place,
            allowed_hosts=[name.strip() for name in settings.allowed_hosts.split(",") if name.strip()],
            analysts=SqlEndpoint(self.snapshot, self.door.limits) if settings.http_sql else None,
        )
        await http.start()
        self._closers.append(http.stop)
        self.http = describe(settings, token)

    async def snapshot(self, max_age_s: float, freshness: Any = None) -> tuple[Snapshot, dict[str, Any]]:
        """For analysts' SQL: a snapshot that is at most so old, or made once `freshness` is applied: a write's token, or `now` for
        whatever was accepted so far. With it what it lacks: `stale` when that was not in time, `behind` (what the store lacked of the
        log when the snapshot was made). Raises Refused for what is no token.
        """
        is_stale = freshness is not None and not await self.has_reached(freshness)
        lacking = self.health.backlog()
        found = await asyncio.to_thread(self.snapshots.get, max_age_s if freshness is None else 0.0)
        if found.age_s == 0.0:  # made just now
            self._snapshot_lacks = lacking
        return found, ({"stale": True} if is_stale else {}) | self._snapshot_lacks.flag()

    async def has_reached(self, freshness: Any, stages: Sequence[str] = ()) -> bool:
        """Wait until a token is applied, or for `now` what was accepted so far, and processed by these stages; whether it was in time.
        What the log does not take from the spool is not in time, whatever the token: a spooled write has none. Raises Refused for
        what is no token."""
        token = Freshness() if freshness == NOW else self.applied.token(freshness)
        has_all = await self._follow_spool()
        if freshness == NOW and has_all:  # else the log is away, and cannot be asked how far it reaches
            # of the calls that were answered: they are accepted too
            has_all = await self.door.publisher.flushed(RECORDS_WAIT_S)
            token = Freshness(await self.log.end_offsets(self.followed))
        wanted = token.merged(self.gateway.spool.followed)
        return await self.applied.wait(wanted, timeout_s=FRESHNESS_WAIT_S, stages=stages) and has_all

    async def publish(self, event: Event, topic: str) -> Freshness:
        """Put on the log what comes by no tool; what was spooled goes first. Raises LogUnavailable."""
        await self.gateway.spool.drain(self.log)  # else it would overtake it
        return Freshness.after(await self.log.publish([encode(topic, event)]))

    def indexes_ready(self) -> bool:
        """Whether every index answers by itself, not by exact search over the tables."""
        return self.indexes.wait_ready(0)

    async def _maintain(self) -> None:
        """Every second, off every waited path: keyword commits, index saves, and a look at how far behind each part is."""
        while True:
            await asyncio.sleep(MAINTAIN_S)
            await asyncio.to_thread(self.indexes.maintain)
            await self.health.observe()
            idle_since, limit = self.socket.idle_since, self.settings.idle_exit_s
            if limit and idle_since is not None and self.clock.monotonic() - idle_since > limit:
                self.ask_to_stop()

    async def _drain_spool(self) -> None:
        """What was spooled while the log was down follows in order as soon as it is back."""
        while True:
            await self._follow_spool()
            await asyncio.sleep(0.5)

    async def _follow_spool(self) -> bool:
        """Put what was spooled on the log, in order; whether nothing is left. While the log is down the records stay in the spool."""
        try:
            await self.gateway.spool.drain(self.log)
        except LogUnavailable:
            return False
        return True

    async def _close_materialiser(self) -> None:
        for task in self._critical:
            task.cancel()
        await asyncio.gather(*self._critical, return_exceptions=True)
        await asyncio.to_thread(self.materialiser.thread.shutdown)

    async def _close_indexes(self) -> None:
        await asyncio.to_thread(self.indexes.close)

    async def _close_store(self) -> None:
        self.reader.close()
        self.writer.close()

    async def _close_database(self) -> None:
        self.database.close()
