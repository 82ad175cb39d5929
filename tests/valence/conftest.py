"""What the tests of beliefs run on.

The real door over a node on one thread, with the hashing embedder and the real detector.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.memory.registry import TEXTS, texts_to_embed
from processors.memory.vector_facts import encode_vector
from processors.valence.stages.tensions import Tensions
from streams.codec import decode, encode
from streams.event_types.memory import EMBEDDED
from streams.events import Event, LoggedEvent
from streams.log.base import Outgoing, Record
from streams.positions import Freshness, Partition, Position
from streams.topics import MEMORY
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent


class BeliefNode(SmallNode):
    """A node whose beliefs are embedded and compared at once."""

    def __init__(self, home: Path) -> None:
        super().__init__(home, HashingEmbedder())
        self.tensions = Tensions(self.reader, self.indexes, self.applied)
        self.facts: list[Event] = []
        self.waiting: list[Record] = []

    def _vectors(self, records: Sequence[Record]) -> list[Event]:
        logged = [logged for record in records if record.topic == MEMORY.name for logged in decode(record)]
        return [self._embedded(one.event) for one in logged if self._has_vector(one.event)]

    def _has_vector(self, event: Event) -> bool:
        return event.type in TEXTS and event.type.startswith("thalweg.valence.")

    def _derive(self, logged: LoggedEvent) -> None:
        if logged.event.type not in Tensions.accepts:
            super()._derive(logged)
        else:
            self.detect(logged)

    def _embedded(self, event: Event) -> Event:
        texts = texts_to_embed(event)
        vectors = HashingEmbedder().encode([text for _, text in texts])
        info = HashingEmbedder().info
        made_by = {"space": info.space, "model_id": info.model_id, "dim": info.dim, "trained": info.trained}
        items = [
            {"record_id": identity, "vector": encode_vector(vector)}
            for (identity, _), vector in zip(texts, vectors, strict=True)
        ]
        return Event(f"{event.id}/vectors", "test", EMBEDDED, event.namespace, event.time, made_by | {"vectors": items})

    def detect(self, logged: LoggedEvent) -> None:
        """What the detector finds for this event now."""
        cursor = self.store.database.cursor()
        facts = self.tensions.find(cursor, [logged])[0]
        self.facts += facts
        self._keep(*facts)

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        """As the small node's; what lies on the log while it is behind is kept for `catch_up`."""
        before = dict(self.store.offsets)
        positions = await super().publish(records, timeout_s=timeout_s)
        if self.is_behind:
            self.store.offsets = before
            self.waiting += [self.store.record(outgoing) for outgoing in records]
        return positions

    async def end_offsets(self, topics: Iterable[str]) -> dict[Partition, int]:
        waiting = Freshness.after(record.position for record in self.waiting if record.topic in topics)
        return dict(Freshness(await super().end_offsets(topics)).merged(waiting).next_offsets)

    def catch_up(self) -> None:
        """Everything that waits is applied."""
        self.is_behind = False
        waiting, self.waiting = self.waiting, []
        self.process(waiting)

    def tell(self, event: Event) -> None:
        """An event of a foreign producer on the memory topic, applied."""
        self.published.append(event)
        self.process([self.store.record(encode(MEMORY.name, event))])


class Believer(Agent):
    """`await agent.hold("Redis is fast")` is the belief that came of it. Each call takes a second."""

    async def call(self, tool: str, *, request_id: str | None = None, **arguments: Any) -> dict[str, Any]:
        answer = await super().call(tool, request_id=request_id, **arguments)
        self.node.clock.time += timedelta(seconds=1)
        return answer

    async def hold(self, content: str, *entities: str, **more: Any) -> dict[str, Any]:
        linked = {"entities": [{"name": name, "type": "tool"} for name in entities]} if entities else {}
        answer = await self.call("belief_create", content=content, **linked, **more)
        assert answer["success"], answer
        belief: dict[str, Any] = answer["belief"]
        return belief

    async def found(self, query: str, **more: Any) -> list[str]:
        """The contents of what is found, best first."""
        answer = await self.call("belief_query", query=query, **more)
        return [belief["content"] for belief in answer["beliefs"]]

    async def one_tension_of(self, status: str) -> dict[str, Any]:
        """The only tension of that status."""
        [tension] = (await self.call("tension_list", status=status))["tensions"]
        found: dict[str, Any] = tension
        return found

    async def one_tension(self) -> dict[str, Any]:
        """The only tension there is."""
        [tension] = (await self.call("tension_list"))["tensions"]
        found: dict[str, Any] = tension
        return found


@pytest.fixture
def node(tmp_path: Path) -> Iterator[BeliefNode]:
    node = BeliefNode(tmp_path)
    yield node
    node.close()


@pytest.fixture
def agent(node: BeliefNode) -> Believer:
    return Believer(node)
