"""Edges between memories: what the log says of them is what is kept and read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import count
from typing import Any

import pytest

from processors.context_graph.read.edges import edges_of, may_be_joined, may_lead_on, read_edges
from processors.context_graph.rules.edges import KINDS, Edge, living
from streams.codec import encode
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.event_types.context_graph import MEMORY_RECALLED, MEMORY_STORED
from streams.events import Event, event_types
from tests.talos.embedding_node import EmbeddingNode

_numbers = count()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddingNode]:
    """One node for the module: each test tells of a namespace of its own."""
    node = EmbeddingNode(tmp_path_factory.mktemp("edges"))
    yield node
    node.close()


@pytest.fixture
def namespace() -> str:
    return f"edges-{next(_numbers)}"


def tell(node: EmbeddingNode, namespace: str, kind: str, data: dict[str, Any]) -> None:
    """Put an event on the log, a second after the last one."""
    node.clock.time += timedelta(seconds=1)
    event = Event(f"e{next(_numbers)}", "producer", kind, namespace, node.clock.now(), data)
    node.process([node.store.record(encode(event_types()[kind].topic, event))])


def edge(source: str, target: str, kind: str = "similar", weight: float = 0.6, **more: Any) -> dict[str, Any]:
    return {"source_id": source, "target_id": target, "kind": kind, "weight": weight, **more}


def read(node: EmbeddingNode, namespace: str, *kinds: str) -> list[Edge]:
    return read_edges(node.store.database.cursor(), namespace, kinds or None)


def test_edges_without_a_direction_are_kept_once(node: EmbeddingNode, namespace: str) -> None:
    told = [edge("b", "a"), edge("a", "b", weight=0.9), edge("b", "a", "causal", 0.8, confidence=0.7), edge("c", "c")]
    tell(node, namespace, EDGES_FOUND, {"edges": told})
    assert read(node, namespace) == [Edge("a", "b", "similar", 0.6), Edge("b", "a", "causal", 0.8, 0.7)]
    assert read(node, namespace, "causal") == [Edge("b", "a", "causal", 0.8, 0.7)]
    assert read(node, "another") == []


def test_what_a_dream_made_of_an_edge_stays_when_it_is_found_again(node: EmbeddingNode, namespace: str) -> None:
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b", space="s")]})
    change = {"dream_id": "d", "changes": [edge("b", "a", weight=0.7), edge("b", "c", "rem", 0.3, confidence=0.5)]}
    tell(node, namespace, EDGES_CHANGED, change)
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b", space="s")]})
    assert read(node, namespace) == [Edge("a", "b", "similar", 0.7), Edge("b", "c", "rem", 0.3, 0.5)]
    rows = node.store.sql(
        "SELECT source_id, weight, weight_before FROM context_edge_changes WHERE namespace = ?", namespace
    )
    assert rows == [("a", 0.7, 0.6), ("b", 0.3, None)]
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b", weight=0.55, space="another model")]})
    assert read(node, namespace, "similar") == [Edge("a", "b", "similar", 0.55)]


def test_a_removed_edge_is_not_read(node: EmbeddingNode, namespace: str) -> None:
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b"), edge("b", "c", "causal", 0.9, evidence="It did.")]})
    tell(node, namespace, EDGES_CHANGED, {"dream_id": "d", "changes": [edge("a", "b", weight=0.04, is_removed=True)]})
    assert read(node, namespace) == [Edge("b", "c", "causal", 0.9, 1.0, "It did.")]
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b")]})
    assert len(read(node, namespace)) == 1, "pruned stays pruned"


def test_a_cause_that_is_stated_more_surely_replaces_what_is_known(node: EmbeddingNode, namespace: str) -> None:
    for confidence, evidence in ((0.6, "if"), (0.9, {"sentence": "because"}), (0.7, "perhaps")):
        told = edge("a", "b", "causal", confidence, confidence=confidence, evidence=evidence)
        tell(node, namespace, EDGES_FOUND, {"edges": [told]})
    assert read(node, namespace) == [Edge("a", "b", "causal", 0.9, 0.9, {"sentence": "because"})]


def test_the_edges_at_some_memories_are_read_alone(node: EmbeddingNode, namespace: str) -> None:
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b"), edge("b", "c"), edge("c", "d", "temporal", 0.3)]})
    cursor = node.store.database.cursor()
    assert {one.key[:2] for one in edges_of(cursor, namespace, ["b"])} == {("a", "b"), ("b", "c")}
    assert [one.kind for one in edges_of(cursor, namespace, ["d", "x"], ["temporal"])] == ["temporal"]
    assert edges_of(cursor, namespace, []) == []


def test_a_path_that_a_search_walked_counts_once_a_request(node: EmbeddingNode, namespace: str) -> None:
    about = {"query_vector_id": "q", "tool": "search_graph", "results": [{"memory_id": "d"}]}
    tell(node, namespace, MEMORY_RECALLED, {**about, "chains": [list("abcd"), list("abc"), list("abcd")]})
    tell(node, namespace, MEMORY_RECALLED, about)
    rows = node.store.sql(
        f"SELECT path, hops, tool FROM context_traversals WHERE namespace = '{namespace}' ORDER BY hops"
    )
    assert rows == [("a b c", 2, "search_graph"), ("a b c d", 3, "search_graph")]


def test_edges_of_merged_memories_move_to_the_living_one() -> None:
    edges = [
        Edge("a", "b", "similar", 0.6),
        Edge("b", "c", "similar", 0.7),
        Edge("c", "a", "causal", 0.8),
        Edge("a", "d", "similar", 0.5),
    ]
    moved = living(edges, {"a": "z", "b": "z"})
    assert moved == [Edge("c", "z", "similar", 0.7), Edge("c", "z", "causal", 0.8), Edge("d", "z", "similar", 0.5)]
    assert living([Edge("a", "c", "similar", 0.6), Edge("b", "c", "similar", 0.9)], {"b": "a"}) == [
        Edge("a", "c", "similar", 0.9)
    ]


def test_edges_follow_merges_wherever_they_are_read(node: EmbeddingNode, namespace: str) -> None:
    tell(node, namespace, EDGES_FOUND, {"edges": [edge("a", "b"), edge("b", "c", weight=0.7), edge("c", "d")]})
    group = {"memory_id": "z", "content": "Tides turn | The tide turns", "merged_from": ["a", "b"]}
    stored = [{"content": "Tides turn"}, {"content": "The tide turns"}]
    ids = []
    for data in stored:
        tell(node, namespace, MEMORY_STORED, data)
        [(identity,)] = node.store.sql(
            "SELECT memory_id FROM context_memories WHERE content = ? AND namespace = ?", data["content"], namespace
        )
        ids.append(identity)
    tell(node, namespace, EDGES_FOUND, {"edges": [edge(ids[0], ids[1]), edge(ids[1], "c", weight=0.9)]})
    tell(node, namespace, MEMORIES_MERGED, group_event := {"groups": [group | {"merged_from": ids}]})
    assert group_event["groups"]
    assert Edge("c", "z", "similar", 0.9) in read(node, namespace)
    cursor = node.store.database.cursor()
    for asked in ("z", ids[0]):
        assert edges_of(cursor, namespace, [asked]) == [Edge("c", "z", "similar", 0.9)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ends", [("m", "n"), ("n", "m")])
def test_what_an_edge_joins_is_known_without_a_query(
    node: EmbeddingNode, namespace: str, kind: str, ends: tuple[str, str]
) -> None:
    tell(node, namespace, EDGES_CHANGED, {"dream_id": "d", "changes": [edge(*ends, kind)]})
    may_hold = node.store.writer.may_hold
    assert may_be_joined(namespace, "m", ["a", "n", "z"], may_hold)
    assert may_be_joined(namespace, "n", ["m"], may_hold)
    assert not may_be_joined(namespace, "m", ["a", "z"], may_hold)
    assert not may_be_joined(f"{namespace} too", "m", ["n"], may_hold)


def test_whether_a_path_of_two_hops_leads_away_is_known_without_a_query(node: EmbeddingNode, namespace: str) -> None:
    may_hold = node.store.writer.may_hold
    tell(node, namespace, EDGES_CHANGED, {"dream_id": "d", "changes": [edge("m", "n")]})
    assert not may_lead_on(namespace, ["m", "n", "o"], may_hold), "an edge leads away, and nothing from there"
    tell(node, namespace, EDGES_CHANGED, {"dream_id": "e", "changes": [edge("n", "o")]})
    assert may_lead_on(namespace, ["m", "n", "o"], may_hold)
    assert not may_lead_on(namespace, ["n", "m", "o"], may_hold), "both are one hop away"
