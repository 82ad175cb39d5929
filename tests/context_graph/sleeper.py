"""An agent of a whole node that dreams, for the tests of dreams."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp_ingress.activity import Activity
from mcp_ingress.door import Request, Visitor
from mcp_ingress.toolsets.context_graph.dreams import Dreams
from processors.context_graph.rules.idleness import IDLE_S
from streams.codec import decode, encode
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.context_graph import MEMORY_RECALLED
from streams.events import Event, event_types
from streams.positions import Freshness, Partition
from streams.topics import DERIVED
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings


class Sleeper:
    """An agent of a whole node, which can also put facts on its log."""

    def __init__(self, node: Node) -> None:
        self.node = node
        self.visitor = Visitor(node.running.door.local)
        self._events = 0

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return (await self.node.running.door.call(self.visitor, Request(tool, arguments))).body

    async def remember(self, *texts: str) -> list[str]:
        """Keep them; returns their ids, once they have their vectors and what edges the stage finds."""
        kept = [await self.call("store_memory", content=text) for text in texts]
        token = Freshness.from_json(kept[-1]["freshness"])
        assert await self.node.running.store.applied.wait(token, timeout_s=SOON_S, stages=("embed", "relate"))
        return [one["fingerprintId"] for one in kept]

    async def tell(self, event_type: str, data: dict[str, Any], namespace: str = "default") -> None:
        """Put an event on the log; returns when it is applied."""
        self._events += 1
        event = Event(f"told-{self._events}", "producer", event_type, namespace, self.node.clock.now(), data)
        record = encode(event_types()[event_type].topic, event)
        token = Freshness.after(await self.node.log.publish([record]))
        assert await self.node.running.store.applied.wait(token, timeout_s=SOON_S)

    async def join(self, *edges: tuple[str, str, str, float]) -> None:
        told = [
            {"source_id": one, "target_id": other, "kind": kind, "weight": weight} for one, other, kind, weight in edges
        ]
        await self.tell(EDGES_FOUND, {"edges": told})

    async def recall(self, query: str, ids: Sequence[str]) -> None:
        results = [{"memory_id": one, "similarity": 0.9} for one in ids]
        await self.tell(MEMORY_RECALLED, {"query_vector_id": query, "tool": "search_graph", "results": results})

    async def rows(self, query: str) -> list[tuple[Any, ...]]:
        return await self.node.running.store.reader.run(lambda cursor: cursor.execute(query).fetchall())

    async def logged(self, event_type: str) -> list[Event]:
        """What is on the log of derived facts, of one type."""
        reader = await self.node.log.reader({Partition(DERIVED.name, 0): 0})
        records = await reader.read(timeout_s=1.0, max_records=1000)
        await reader.close()
        return [logged.event for record in records for logged in decode(record) if logged.event.type == event_type]

    async def dreamt(self) -> dict[str, Any]:
        """The report of a dream, however long it takes."""
        await self.call("trigger_dream", force=True)
        async with asyncio.timeout(SOON_S):
            while (status := await self.call("get_dream_status"))["is_dreaming"]:
                await asyncio.sleep(0.05)
        report: dict[str, Any] = status["last_report"]
        return report

    async def idle(self, *, dreams: bool = True) -> None:
        """Have the node idle for so long that it dreams by itself, until it has; `dreams`: whether it is to."""
        dreamt = "SELECT 1 FROM context_dream_cycles WHERE cause = 'idle' AND is_complete"
        self.node.running.services.part(Activity)._began -= IDLE_S
        dreamer = self.node.control._dreamer
        async with asyncio.timeout(SOON_S):
            await dreamer._look()
            while dreams and not await self.rows(dreamt):
                await dreamer._look()
                await asyncio.sleep(0.02)
        assert dreams or not await self.rows("SELECT 1 FROM context_dreams")

    @property
    def dreams(self) -> Dreams:
        return self.node.running.services.part(Dreams)


@asynccontextmanager
async def awake(home: Path) -> AsyncIterator[Sleeper]:
    """A node that has just started on this directory, until the block ends."""
    node = Node(Settings(home=migrated_home(home), embedder="hashing", partitions=1))
    await node.start()
    try:
        yield Sleeper(node)
    finally:
        await node.stop()
