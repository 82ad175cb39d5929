"""A node on one thread: the real tools, reducers, store and spool.

The log is a list, and a publish is processed at once.

Entities are compared by canonical form only (no model). `is_down`, `is_behind` and `store_is_down` are the faults.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import orjson

from mcp_ingress.call import Call, ClientConnection
from mcp_ingress.inventory import find_tools
from mcp_ingress.services import Limits, Services
from mcp_ingress.spool import Spool
from processors.embedding.model import Embedder
from processors.memory.registry import ROLES, SOURCES
from processors.memory.stages.changes import MemoryChanges
from processors.memory.stages.embed import Embed
from processors.talos.read.graph_source import read_graph
from processors.talos.read.session_state import read_state
from processors.talos.rules.extraction import Entity, extract
from processors.talos.rules.similarity import EntityRecord, similar_records
from processors.talos.stages.patterns import Patterns
from processors.talos.stages.prune import Prune
from storage.applied import AppliedPositions
from storage.graph.projection import Projections
from storage.reader import Reader
from storage.search.captured import captured_cursor
from storage.search.index_set import IndexSet
from streams.codec import decode, encode
from streams.errors import LogUnavailable, Unavailable
from streams.event_types.talos import ENTITIES_EXTRACTED, SIMILAR_FOUND
from streams.events import Event, LoggedEvent, wire_type
from streams.log.base import Log, Outgoing, Record
from streams.positions import Partition, Position
from streams.topics import DERIVED, MEMORY, TELEMETRY
from tests.processors.harness import Store
from tests.talos.making import NOON, make_event

STAGES = ("causes", "changes", "extract", "embed", "dedup", "patterns", "consolidate", "prune", "relate", "tensions")


class SetClock:
    """Wall time that stands still until it is moved."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return 0.0


class FallibleReader(Reader):
    """The real reader, which can be told that the store is gone."""

    is_down = False

    async def run(self, query: Callable[[Any], Any]) -> Any:
        if self.is_down:
            raise Unavailable("The store does not answer.")
        return await super().run(query)


class SmallNode:
    """`await node.call("journal_write", content=…)` runs a tool as the door does, without limits."""

    def __init__(self, home: Path, embedder: Embedder | None = None) -> None:
        self.store = Store()
        self.clock = SetClock()
        self.applied = AppliedPositions()
        self.reader = FallibleReader(self.store.database, threads=1)
        self.published: list[Event] = []
        self.is_down = self.is_behind = False
        self.late_stages: Collection[str] = ()
        self.connection = ClientConnection()
        self.spool = Spool(home / "spool")
        self.embedder = embedder
        self.embed = Embed(embedder)
        model, connect = embedder.info if embedder else None, self.store.database.cursor
        turns = IndexSet(home / "turns", lambda: captured_cursor(connect()), model, roles=ROLES)
        self.indexes = IndexSet(home / "indexes", connect, model, sources=SOURCES, turns=turns)
        self.indexes.open({})
        self.services = Services(
            cast(Log, self),
            self.applied,
            self.reader,
            self.indexes,
            embedder,
            self.spool,
            self.clock,
            Limits(0.05, 1.0, 0.05),
        )
        self.services.may_hold, self.services.recent = self.store.writer.may_hold, self.store.writer.recent
        self.services.parts[Projections] = Projections(home / "graph", read_graph)
        self._requests = 0

    largest, check = Log.largest, Log.check

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        if self.is_down:
            raise LogUnavailable("The log does not answer.")
        lying = [self.store.record(outgoing) for outgoing in records]
        self.published += [logged.event for record in lying for logged in decode(record)]
        if not self.is_behind:
            self.process(lying)
        return [record.position for record in lying]

    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        if self.is_down:
            raise LogUnavailable("The log does not answer.")
        return self.store.end_offsets(topics)

    def process(self, records: Sequence[Record]) -> None:
        """What the materialiser and the stages do with these records, up to the applied positions."""
        self._apply(*records)
        self._keep(*self._vectors(records))
        for record in records:
            for logged in decode(record):
                if record.topic == MEMORY.name:
                    self._derive(logged)
                    self._find_changes(logged)
            at, reached = Partition(record.topic, record.partition), record.offset + 1
            stages = [stage for stage in STAGES if stage not in self.late_stages]
            self.applied.advance({at: reached}, {(stage, at): reached for stage in stages})

    def telemetry(self, name: str) -> list[dict[str, Any]]:
        """The attributes of every telemetry event of that name on the log."""
        return [dict(event.data["attributes"]) for event in self.published if event.type == f"thalweg.{name}.v1"]

    async def call(self, tool: str, *, request_id: str | None = None, **arguments: Any) -> dict[str, Any]:
        """Run a tool on the node's one connection. Raises Refused as the handler does."""
        self._requests += 1
        inventory = find_tools()
        checked = inventory.checks[tool](arguments)
        call = Call(
            self.services,
            self.connection,
            "default",
            request_id or f"request-{self._requests}",
            self.connection.last_writes,
        )
        answer = await inventory.tools[tool].handler(call, checked)
        self.clock.time += timedelta(seconds=1)
        return answer

    def observe(self, short_type: str, **attributes: Any) -> None:
        """An event of the agent's own telemetry, applied."""
        data = {"attributes": {f"talos.{name.replace('__', '.')}": value for name, value in attributes.items()}}
        event = make_event(
            short_type, data, event_id=f"agent-{len(self.published)}", time=self.clock.time, namespace="default"
        )
        self.published.append(event)
        self.process([self.store.record(encode(TELEMETRY.name, event))])

    def request(self, short_type: str, **data: Any) -> tuple[str, str | None, dict[str, Any]]:
        """What was decided about an operator's request: status, message and result."""
        self._requests += 1
        identity = f"request-{self._requests}"
        event = make_event(
            short_type, data | {"request_id": identity}, event_id=identity, time=self.clock.time, namespace="default"
        )
        self.clock.time += timedelta(seconds=1)
        self.process([self.store.record(encode(MEMORY.name, event))])
        [(status, message, result)] = self.store.sql(
            "SELECT status, message, result FROM outcomes WHERE request_id = ?", identity
        )
        return status, message, orjson.loads(result or "{}")

    def _vectors(self, records: Sequence[Record]) -> list[Event]:
        """The vectors of these records' texts, as facts; none here."""
        return []

    def _derive(self, logged: LoggedEvent) -> None:
        if logged.event.type == wire_type("talos.session.closed"):
            self._show_patterns(logged)
        if logged.event.type in Prune.accepts:
            self._keep(*Prune(self.reader, self.applied).find(self.store.database.cursor(), logged))
        source, found = logged.event, extract(logged.event)
        if not found.entities:
            return
        data = {
            "source_event_id": source.id,
            "session_id": source.data.get("session_id"),
            "entities": [
                {
                    "id": e.id,
                    "label": e.label,
                    "text": e.text,
                    "properties": dict(e.properties),
                    "confidence": e.confidence,
                }
                for e in found.entities
            ],
            "relations": [
                {"type": r.type, "from": r.from_id, "to": r.to_id, "properties": dict(r.properties)}
                for r in found.relations
            ],
        }
        told: list[tuple[str, dict[str, Any]]] = [(ENTITIES_EXTRACTED, data)]
        for entity in found.entities:
            about = {"record_id": entity.id, "label": entity.label, "category": entity.properties.get("category")}
            told.append((SIMILAR_FOUND, {**about, "similar": self._similar(entity)}))
        of = source.namespace, source.time
        self._keep(
            *(
                Event(f"{source.id}/{number}", "test", event_type, *of, given, None, source.extensions)
                for number, (event_type, given) in enumerate(told)
            )
        )

    def _find_changes(self, logged: LoggedEvent) -> None:
        """What the stage `changes` publishes, once the memory has its vector."""
        stage = MemoryChanges(self.reader, self.indexes, self.applied)
        if self.embedder is not None and logged.event.type in stage.accepts:
            self._keep(*(fact for facts in stage.find(self.store.database.cursor(), [logged]) for fact in facts))

    def _show_patterns(self, logged: LoggedEvent) -> None:
        """What the patterns stage publishes."""
        stage = Patterns(self.reader, self.applied, self.embed)
        state = read_state(self.store.database.cursor(), logged.event.namespace, logged.event.data["session_id"])
        if state is not None:
            self._keep(*stage.signalled(logged, state))

    def _similar(self, entity: Entity) -> list[dict[str, Any]]:
        rows = self.store.sql('SELECT entity_id, label, text, category FROM entities ORDER BY "offset", idx')
        new = EntityRecord(entity.id, entity.label, entity.text, entity.properties.get("category"))
        found = similar_records(new, (EntityRecord(*row) for row in rows))
        return [{"record_id": match.record_id, "how": match.how, "cosine": match.cosine} for match in found]

    def _keep(self, *facts: Event) -> None:
        """What a stage publishes of one record."""
        self._apply(*(self.store.record(encode(DERIVED.name, fact)) for fact in facts))

    def _apply(self, *records: Record) -> None:
        """These records in one transaction, as the materialiser does it."""
        if not records:
            return
        indexed = self.store.apply(*records).indexed
        self.indexes.apply(indexed.documents, indexed.vectors)
        assert self.indexes.turns is not None
        self.indexes.turns.defer(indexed.turns, indexed.turn_vectors, {})

    def close(self) -> None:
        self.indexes.close(save=False)
        self.reader.close()
        self.store.database.close()
