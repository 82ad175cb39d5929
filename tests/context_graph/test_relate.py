"""The stage `relate`: what a new memory is joined to, by its meaning and by its time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import numpy as np
import pytest

from processors.context_graph.read.edges import read_edges
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.edges import Edge
from processors.context_graph.rules.memories import memory_id_of
from processors.context_graph.rules.shortcuts import MIN_CONFIDENCE
from processors.context_graph.stages.relate import CONNECTED, MOST_SIMILAR, TEMPORAL_WEIGHT, THETA_EDGE, Relate
from streams.codec import decode, encode
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.context_graph import MEMORY_STORED
from streams.events import CONNECTION, Event, LoggedEvent
from streams.topics import DERIVED, MEMORY
from tests.talos.embedding_node import EmbeddingNode

TIDES = "The tide turns at noon in the harbour of the island"


class _Writer:
    """Stores memories of one namespace, and then lets the stage look at them."""

    def __init__(self, node: EmbeddingNode, namespace: str) -> None:
        self.node, self.namespace = node, namespace
        self.stage = Relate(node.reader, node.indexes, node.applied)
        self.logged: list[LoggedEvent] = []

    def store(self, content: str, *, session: str | None = None, connection: str | None = None) -> str:
        """The memory's id."""
        node = self.node
        node.clock.time += timedelta(seconds=1)
        extensions = {} if connection is None else {CONNECTION: connection}
        data = {"content": content, "session_id": session}
        identity = f"{self.namespace}-{len(self.logged)}"
        event = Event(identity, "test", MEMORY_STORED, self.namespace, node.clock.now(), data, extensions=extensions)
        record = node.store.record(encode(MEMORY.name, event))
        node.process([record])
        [logged] = decode(record)
        self.logged.append(logged)
        return memory_id_of(event)

    def edges(self) -> list[Edge]:
        """What the stage finds of all that was stored, as it is kept."""
        for facts in self.stage.find(self.node.store.database.cursor(), self.logged):
            for fact in facts:
                self.node.process([self.node.store.record(encode(DERIVED.name, fact))])
        return read_edges(self.node.store.database.cursor(), self.namespace)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path_factory.mktemp("relate"))
    yield node
    node.close()


@pytest.fixture
def writer(node: EmbeddingNode, request: pytest.FixtureRequest) -> _Writer:
    return _Writer(node, request.node.name)


def test_a_memory_is_joined_to_those_that_it_is_near_to_with_their_cosine(writer: _Writer) -> None:
    one, other, far = writer.store(TIDES), writer.store(f"{TIDES}, always"), writer.store("Bread rises overnight")
    [edge] = writer.edges()
    assert {edge.source_id, edge.target_id} == {one, other} and edge.kind == "similar"
    assert THETA_EDGE <= edge.weight < 1 and far not in edge.key
    assert writer.node.indexes.model is not None
    [(space,)] = writer.node.store.sql("SELECT space FROM context_edges WHERE namespace = ?", writer.namespace)
    assert space == writer.node.indexes.model.space


def test_a_memory_that_resembles_all_others_has_few_edges_of_its_own(writer: _Writer) -> None:
    for number in range(MOST_SIMILAR + 4):
        writer.store(f"{TIDES} {number}")
    writer.logged = writer.logged[-1:]
    assert len(writer.edges()) == MOST_SIMILAR


def test_what_others_or_other_namespaces_say_is_not_joined(writer: _Writer) -> None:
    writer.store(TIDES)
    other = _Writer(writer.node, f"{writer.namespace}-other")
    other.store(f"{TIDES} indeed")
    assert writer.edges() == [] and other.edges() == []


def test_memories_of_one_session_follow_each_other(writer: _Writer) -> None:
    first = writer.store("Bread rises", session="a")
    between = writer.store("Clocks tick", session="b")
    writer.node.clock.time += timedelta(days=1)
    last = writer.store("Gulls cry", session="a")
    [edge] = writer.edges()
    assert edge.key == (*sorted((first, last)), "temporal")
    assert edge.weight == TEMPORAL_WEIGHT and edge.confidence < MIN_CONFIDENCE, "no shortcut goes over it"
    assert between not in edge.key


def test_memories_of_one_connection_follow_each_other_for_ten_minutes(writer: _Writer) -> None:
    first = writer.store("Bread rises", connection="c")
    writer.store("Clocks tick", connection="another")
    second = writer.store("Gulls cry", connection="c")
    writer.node.clock.time += CONNECTED
    writer.store("Moss grows", connection="c")
    [edge] = writer.edges()
    assert edge.key == (*sorted((first, second)), "temporal")


def test_a_content_that_was_stored_before_makes_no_edge_anew(writer: _Writer) -> None:
    writer.store("Bread rises", session="a")
    writer.store("Bread rises", session="a")
    assert writer.edges() == []


async def test_the_stage_publishes_the_same_facts_again(writer: _Writer) -> None:
    writer.store(TIDES, session="a")
    writer.store(f"{TIDES}, always", session="a")
    first, again = await writer.stage.facts(writer.logged), await writer.stage.facts(writer.logged)
    assert [[fact.id for fact in facts] for facts in first] == [[fact.id for fact in facts] for facts in again]
    told = [edge["kind"] for facts in first for fact in facts for edge in fact.data["edges"]]
    assert sorted(told) == ["similar", "similar", "temporal"], "each of two that come together finds the other"


def test_the_neighbours_of_a_memory_are_what_it_has_edges_to_by_their_weights(writer: _Writer) -> None:
    node = writer.node
    one, near, far = writer.store(TIDES), writer.store(f"{TIDES} indeed"), writer.store("Bread rises overnight")
    reader = FingerprintReader(
        node.store.database.cursor(), node.indexes, node.embedder, FingerprintCache(), writer.namespace
    )
    stored = dict(zip((one, near, far), reader.stored([one, near, far]), strict=True))
    assert stored[one] is not None and stored[near] is not None and stored[far] is not None
    by_nearness = reader.as_query(stored[one]).neighbours
    assert by_nearness is not None, "without edges the nearest"
    writer.logged = []
    told = [
        {"source_id": one, "target_id": far, "kind": "causal", "weight": 0.9},
        {"source_id": near, "target_id": one, "kind": "causal", "weight": 0.3},
    ]
    found = Event(f"{writer.namespace}-found", "test", EDGES_FOUND, writer.namespace, node.clock.now(), {"edges": told})
    node.process([node.store.record(encode(DERIVED.name, found))])
    joined = reader.as_query(stored[one]).neighbours
    vectors = [stored[other].vector for other in (far, near)]  # type: ignore[union-attr]
    mean = np.average(vectors, axis=0, weights=[0.9, 0.3])
    assert joined is not None and joined == pytest.approx(mean / np.linalg.norm(mean), abs=1e-5)
