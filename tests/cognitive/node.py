"""A node on one thread with a real door, store, indexes and a hashing embedder.

A publish is applied and embedded at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from mcp_ingress.door import Answer, Door, Request, Visitor
from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from mcp_ingress.services import Limits, Services
from mcp_ingress.spool import Spool
from processors.cognitive.config import CognitiveConfig
from processors.cognitive.rules.judging import LexicalJudge, SemanticJudge
from processors.embedding.hashing import HashingEmbedder
from processors.memory.registry import SOURCES
from processors.memory.stages.changes import MemoryChanges
from processors.memory.stages.embed import Embed
from storage.applied import AppliedPositions
from storage.search.index_set import IndexSet
from streams.codec import decode, encode
from streams.log.base import Log, Outgoing, Record
from streams.positions import Partition, Position
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import Store
from tests.talos.node import FallibleReader, SetClock


class CognitiveNode:
    """`await node.ok("ping")`, `await node.error("hybrid_search", …)`, `await node.read("memory://…")`."""

    def __init__(self, home: Path) -> None:
        self.store = Store()
        self.clock = SetClock()
        self.applied = AppliedPositions()
        self.reader = FallibleReader(self.store.database, threads=2)
        self.embedder = HashingEmbedder()
        self.indexes = IndexSet(home / "indexes", self.store.database.cursor, self.embedder.info, sources=SOURCES)
        self.indexes.open({})
        self.stage = Embed(self.embedder)
        judges = LexicalJudge(), SemanticJudge(self.embedder)
        self.services = Services(
            cast(Log, self),
            self.applied,
            self.reader,
            self.indexes,
            self.embedder,
            Spool(home / "spool"),
            self.clock,
            Limits(0.05, 1.0, 0.05),
            parts={CognitiveConfig: CognitiveConfig(judges=judges)},
        )
        self.services.may_hold, self.services.recent = self.store.writer.may_hold, self.store.writer.recent
        inventory = find_tools().select(["cognitive_memory"])
        self.door = Door(self.services, inventory, find_resources().select(inventory.served), rate_limit=1e6)
        self.visitor = Visitor(self.door.local)

    largest, check = Log.largest, Log.check

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        lying = [self.store.record(outgoing) for outgoing in records]
        for record in lying:
            self._apply(record)
            if record.topic == MEMORY.name:
                logged = [each for each in decode(record) if each.event.type in self.stage.accepts]
                for facts in await self.stage.facts(logged):
                    for fact in facts:
                        self._apply(self.store.record(encode(DERIVED.name, fact)))
                changes = MemoryChanges(self.reader, self.indexes, self.applied)
                for facts in changes.find(self.store.database.cursor(), logged):
                    for fact in facts:
                        self._apply(self.store.record(encode(DERIVED.name, fact)))
            at, reached = Partition(record.topic, record.partition), record.offset + 1
            self.applied.advance({at: reached}, {(stage, at): reached for stage in ("embed", "changes")})
        return [record.position for record in lying]

    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        return self.store.end_offsets(topics)

    def _apply(self, record: Record) -> None:
        indexed = self.store.apply(record).indexed
        self.indexes.apply(indexed.documents, indexed.vectors)

    async def call(self, tool: str, **arguments: Any) -> Answer:
        return await self.door.call(self.visitor, Request(tool, arguments))

    async def ok(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.call(tool, **arguments)
        assert not answer.is_error, answer.body
        return answer.body

    async def error(self, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = await self.call(tool, **arguments)
        assert answer.is_error, answer.body
        assert {"error", "details", "tool"} <= answer.body.keys() and answer.body["tool"] == tool
        return answer.body

    async def read(self, uri: str) -> list[dict[str, Any]]:
        answer = await self.door.read(self.visitor, uri, {})
        assert not answer.is_error, answer.body
        return list(answer.body["contents"])

    def close(self) -> None:
        self.indexes.close(save=False)
        self.reader.close()
        self.store.database.close()


@asynccontextmanager
async def opened(home: Path) -> AsyncIterator[CognitiveNode]:
    node = CognitiveNode(home)
    try:
        yield node
    finally:
        await asyncio.to_thread(node.close)
