"""The node: it assembles the parts, watches them, and ends with a sentence when one of them dies."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections import Counter
from collections.abc import Sequence

from mcp_ingress.activity import Activity
from mcp_ingress.analysts import SqlEndpoint
from mcp_ingress.credentials import Credentials
from mcp_ingress.door import Door
from mcp_ingress.http import Endpoint, HttpServer
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from mcp_ingress.server import build_server
from mcp_ingress.services import Limits, Services
from mcp_ingress.socket import SocketServer
from mcp_ingress.spool import Spool
from mcp_ingress.toolset import Setup
from processors.embedding.cache import with_cache
from processors.embedding.model import Embedder
from processors.embedding.time_limit import with_time_limit
from processors.frame.materialiser import Materialiser
from processors.frame.stage import Stage, StageParts, StageRunner, StoreParts, stage_types
from processors.frame.timer import TimerParts, timers
from processors.memory.registry import COUNTED, ROLES, SOURCES
from processors.memory.stages.embed import Embed
from processors.telemetry.mirror import TelemetryMirror
from storage.applied import AppliedPositions
from storage.database import Database
from storage.malloc import trim
from storage.migrate import migrate
from storage.reader import Reader
from storage.search.captured import captured_cursor
from storage.search.index_set import IndexSet
from storage.writer import RowCopy, Writer
from streams.clock import Clock, SystemClock
from streams.errors import EmbedderUnavailable, LogUnavailable
from streams.log import open_log
from streams.positions import Freshness, Partition
from streams.topics import MEMORY, OTLP_TOPICS, with_partitions
from thalweg import __version__
from thalweg.control.control import Control
from thalweg.control.server import ControlServer
from thalweg.dreams.dreamer import Dreamer
from thalweg.environment import process_environment
from thalweg.paths import control_path, make_home, socket_path
from thalweg.process.analyst_snapshots import AnalystSnapshots
from thalweg.process.embedder_names import check_dimension
from thalweg.process.housekeeping import clear, narrow
from thalweg.process.http_door import describe, http_credentials
from thalweg.process.model import Models
from thalweg.process.parts import Parts
from thalweg.process.running import Running, Store
from thalweg.process.stage_apps import run_stages
from thalweg.settings import Settings
from thalweg.spaces.spaces import Spaces, live_space
from thalweg.status.lag import Lag
from thalweg.terminal.topics import missing_otlp_topics
from thalweg.views.features import FeatureFilling
from thalweg.views.filling import ViewFilling

logger = logging.getLogger("thalweg")

MAINTAIN_S = 1.0
TRIM_S = 60.0
"""How often free memory is given back to the system."""
LOOK_S = 5.0


class Node(Parts):
    """One process: log, stages, store and door, as the role asks. `start`, then `wait`, then `stop`."""

    finishes = "materialiser"

    def __init__(self, settings: Settings, clock: Clock | None = None, *, stages: bool = True) -> None:
        super().__init__()
        self.settings = settings
        self.clock = clock or SystemClock()
        self.started_at, self._up_since = self.clock.now(), self.clock.monotonic()
        self.log = open_log(settings.broker_url)
        self.topics = with_partitions(settings.partitions)
        self._models = Models(settings)
        self._with_stages = stages and settings.role != "ingress"
        self._dreams = stages
        """Also where the stages run elsewhere: a dream needs the store."""
        self._control: Control | None = None

    @property
    def control(self) -> Control:
        """What answers the command line. Raises RuntimeError before `start` is over."""
        if self._control is None:
            raise RuntimeError("The node has not started.")
        return self._control

    @property
    def running(self) -> Running:
        """The parts. Raises RuntimeError before `start` is over."""
        return self.control.running

    async def start(self) -> None:
        """Bring the parts up in the order of their dependence. Raises a ThalwegError with one sentence."""
        settings = self.settings
        make_home(settings.home)
        narrow(settings.home, settings.broker_url)
        store, embedder, inherited = await self._open_store()
        parts = StageParts(embedder, StoreParts(store.reader, store.indexes, store.applied))
        stages = self._stages(parts) if self._with_stages else []
        lag = self._lag(store, stages)
        services = self._services(store, embedder)
        for copy in (part for part in services.parts.values() if isinstance(part, RowCopy)):
            await asyncio.to_thread(store.writer.follow, copy)  # a third of a second for 100,000 rows
        services.backlog, services.requests.inherited = lag.backlog, inherited
        door = self._open_door(services)
        server = build_server(door, __version__)
        credentials = None
        if settings.http:
            credentials = http_credentials(settings, settings.http_address[0], door.catalogues.check)
        running = Running(
            settings=settings,
            clock=self.clock,
            started_at=self.started_at,
            up_since=self._up_since,
            log=self.log,
            store=store,
            models=self._models,
            embed=parts.stage(Embed),
            runners=[StageRunner(stage, self.log, self.clock) for stage in stages],
            lag=lag,
            services=services,
            door=door,
            socket=SocketServer(socket_path(settings.home), server, self.clock, door),
            http=describe(settings) if credentials else None,
            credentials=credentials,
        )
        spaces, dreamer, snapshots = Spaces(running), Dreamer(running), AnalystSnapshots(running)
        if credentials:
            await self._open_http(running, snapshots, credentials)
        self._control = Control(running, spaces, dreamer, snapshots, self.ask_to_stop)
        await self._open_sockets(running, self._control)
        self._start_stages(running, parts)  # after the door: a client that started this node waits for its first answer
        self._guard("maintenance", self._maintain(running, dreamer))
        self._guard("topics", self._look_for_topics(store))
        self._guard("spool", self._drain_spool(running))
        self._guard("spaces", spaces.run())
        if self._dreams:
            self._guard("dreams", dreamer.run())
            store.indexes.views.keep_only(list(settings.models_of_views))
            if settings.models_of_views:
                self._guard("views", ViewFilling(running).run())
            self._guard("features", FeatureFilling(running).run())

    async def _open_store(self) -> tuple[Store, Embedder | None, Freshness]:
        """The store and its materialiser at work, the model, and the memory topic's end at this start."""
        settings = self.settings
        loading = asyncio.ensure_future(asyncio.to_thread(self._load_embedder))  # half a second, beside the rest
        applied = AppliedPositions()
        try:
            database = Database(settings.home)
            self._closers.append(functools.partial(_close_database, database))
            migrate(database.cursor(), self.clock.now())
            writer, reader = Writer(database), Reader(database)
            self._closers.append(functools.partial(_close_store, reader, writer))
            inherited = await self._open_log(applied)
        finally:
            embedder = await loading
        clear(settings.home)
        embedder = await self._live_embedder(database, embedder)
        check_dimension(process_environment(), embedder.info.dim if embedder else None)
        indexes = await self._open_indexes(database, writer, embedder)
        followed = [topic.name for topic in self.topics] + await self._otlp_topics(applied)
        mirror = TelemetryMirror(settings.home / "telemetry", self.clock)
        materialiser = Materialiser(
            self.log, followed, writer, indexes, applied, self.clock, settings.namespace, mirror
        )
        self._guard("materialiser", materialiser.run())
        self._closers.append(functools.partial(self._close_materialiser, materialiser))
        store = Store(
            database=database,
            writer=writer,
            reader=reader,
            indexes=indexes,
            materialiser=materialiser,
            applied=applied,
            followed=followed,
        )
        return store, embedder, inherited

    def _load_embedder(self, name: str | None = None) -> Embedder | None:
        return with_cache(self._models.load(name))

    async def _live_embedder(self, database: Database, embedder: Embedder | None) -> Embedder | None:
        """The model of the store's live space. The setting's for a store that has no space yet, or when it says `none`.

        When that model does not load, the setting's embeds what is new, `spaces` says what is wrong, and re-embedding
        mends it.
        """
        live = live_space(database.cursor())
        if live is None or embedder is None or embedder.info.space == live["space"]:
            return embedder
        try:
            chosen = await asyncio.to_thread(self._load_embedder, live["embedder"])
        except EmbedderUnavailable as error:
            logger.warning("the model of the live space %s does not load: %s", live["space"], error.message)
            return embedder
        return chosen if chosen is not None and chosen.info.space == live["space"] else embedder

    async def _open_indexes(self, database: Database, writer: Writer, embedder: Embedder | None) -> IndexSet:
        model = embedder.info if embedder else None
        home = self.settings.home / "indexes"
        turns = IndexSet(home / "turns", lambda: captured_cursor(database.cursor()), model, roles=ROLES)
        indexes = IndexSet(home, database.cursor, model, COUNTED, SOURCES, ROLES, turns)
        indexes.unsearched = frozenset(_names(self.settings.unsearched_sessions))
        indexes.save_s = self.settings.index_save_s
        self._closers.append(functools.partial(asyncio.to_thread, indexes.close))
        covered = {f"{at.topic}/{at.partition}": offset for at, offset in writer.positions().items()}
        await asyncio.to_thread(indexes.open, covered)
        return indexes

    async def _open_log(self, applied: AppliedPositions) -> Freshness:
        """Reach the broker; how far the memory topic reaches."""
        await self.log.start()
        self._closers.append(self.log.stop)
        await self.log.create_topics(self.topics)
        applied.partitions = {topic.name: topic.partitions for topic in self.topics}
        return Freshness(await self.log.end_offsets([MEMORY.name]))

    async def _otlp_topics(self, applied: AppliedPositions) -> list[str]:
        """Those of the Collector's topics that exist: its exporter makes them with its first record."""
        if not self.settings.otlp_topics:
            return []
        existing = Counter(at.topic for at in await self.log.end_offsets(OTLP_TOPICS))
        applied.partitions.update(existing)
        if absent := missing_otlp_topics(existing):
            logger.warning("%s.", absent)
        return [name for name in OTLP_TOPICS if name in existing]

    async def _look_for_topics(self, store: Store) -> None:
        """The Collector may begin after the node: look until all its topics are followed."""
        while self.settings.otlp_topics and not set(OTLP_TOPICS) <= set(store.followed):
            await asyncio.sleep(LOOK_S)
            try:
                ends = await self.log.end_offsets(OTLP_TOPICS)
            except LogUnavailable:
                continue
            store.applied.partitions.update(Counter(at.topic for at in ends))
            store.materialiser.follow(ends)
            store.followed.extend(sorted({at.topic for at in ends} - set(store.followed)))
        await asyncio.Event().wait()  # a guarded part that ends would end the node

    def _stages(self, parts: StageParts) -> list[Stage]:
        return parts.stages()

    def _start_stages(self, running: Running, parts: StageParts) -> None:
        """Start the Faust app and the timers."""
        if self._with_stages:
            self._guard("stages", run_stages(self.settings, self.log, running.runners, self._closers))
            for timer in timers(TimerParts(parts, self.settings)):
                self._guard(timer.name, timer.run(running.store.reader, self.log, self.clock))

    def _lag(self, store: Store, stages: Sequence[Stage]) -> Lag:
        def age_at_start(at: Partition) -> float | None:
            """The oldest record that is lacking is about as old as the last one that was applied."""
            written_ms = store.materialiser.written_ms.get(at, 0)
            return None if written_ms <= 0 else self.clock.now().timestamp() - written_ms / 1000

        elsewhere = stage_types() if self.settings.role == "ingress" else ()
        return Lag(
            self.log,
            store.applied,
            self.clock,
            store.followed,
            here=stages,
            elsewhere=elsewhere,
            age_at_start=age_at_start,
        )

    def _services(self, store: Store, embedder: Embedder | None) -> Services:
        settings = self.settings
        activity = Activity(self.clock.monotonic)
        services = Services(
            log=self.log,
            applied=store.applied,
            reader=store.reader,
            indexes=store.indexes,
            embedder=with_time_limit(embedder),
            spool=Spool(settings.home / "spool"),
            clock=self.clock,
            limits=Limits(write_wait_s=settings.write_wait_s, vector_wait_s=settings.vector_wait_s),
            parts={**find_tools().parts(Setup(settings, process_environment(), embedder)), Activity: activity},
            may_hold=store.writer.may_hold,
            recent=store.writer.recent,
        )
        services.requests.may_be_decided = lambda request: store.writer.may_hold("outcomes", request)
        return services

    def _open_door(self, services: Services) -> Door:
        settings = self.settings
        chosen = _names(settings.toolsets)
        inventory = find_tools().select(chosen or None, read_only=settings.read_only)
        resources = find_resources().select(inventory.served)
        door = Door(
            services,
            inventory,
            resources,
            namespace=settings.namespace,
            rate_limit=settings.rate_limit,
            output_schemas=settings.output_schemas,
            structured_clients=[name.strip() for name in settings.structured_clients.split(",") if name.strip()],
        )
        door.start()
        self._closers.append(door.stop)
        return door

    async def _open_sockets(self, running: Running, control: Control) -> None:
        """The last doors: what connects finds everything ready, the other door too."""
        server = ControlServer(control_path(self.settings.home), control.handle)
        for door in (server, running.socket):
            self._closers.append(door.stop)
            door.listen()
        await server.start()
        await running.socket.start()

    async def _open_http(self, running: Running, snapshots: AnalystSnapshots, credentials: Credentials) -> None:
        settings, door = self.settings, running.door
        host, port = settings.http_address
        allowed_hosts = _names(settings.allowed_hosts)
        http = HttpServer(
            build_server(door, __version__),
            door,
            credentials,
            Endpoint(host, port, allowed_hosts),
            analysts=SqlEndpoint(snapshots.get, door.limits) if settings.http_sql else None,
        )
        await http.start()
        self._closers.append(http.stop)

    async def _maintain(self, running: Running, dreamer: Dreamer) -> None:
        """Every second, off every waited path: keyword commits, index saves, how far behind parts are.

        Every minute, first after the start: what is kept of large namespaces is brought up to date, and memory goes
        back.
        """
        next_trim = self.clock.monotonic()
        while True:
            await asyncio.sleep(MAINTAIN_S)
            await asyncio.to_thread(running.store.indexes.maintain)
            if self.clock.monotonic() >= next_trim:
                next_trim = self.clock.monotonic() + TRIM_S
                await running.warm_views()
                await asyncio.to_thread(trim)
            await running.lag.observe()
            idle_since, limit = running.socket.idle_since, self.settings.idle_exit_s
            is_idle = idle_since is not None and not dreamer.is_dreaming
            if limit and is_idle and self.clock.monotonic() - (idle_since or 0.0) > limit:
                self.ask_to_stop()

    async def _drain_spool(self, running: Running) -> None:
        """What was spooled while the log was down follows in order as soon as it is back."""
        while True:
            await running.drain_spool()
            await asyncio.sleep(0.5)

    async def _close_materialiser(self, materialiser: Materialiser) -> None:
        for task in self._critical:
            task.cancel()
        await asyncio.gather(*self._critical, return_exceptions=True)
        await asyncio.to_thread(materialiser.thread.shutdown)


async def _close_store(reader: Reader, writer: Writer) -> None:
    reader.close()
    writer.close()


async def _close_database(database: Database) -> None:
    database.close()


def _names(listed: str) -> list[str]:
    """The names of a setting that lists some with commas between them."""
    return [name.strip() for name in listed.split(",") if name.strip()]
