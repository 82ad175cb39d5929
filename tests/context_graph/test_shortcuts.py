"""Chains by which searches reach memories, and the shortcuts that often walked chains deserve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from processors.context_graph.rules.chains import MOST_HOPS, chains
from processors.context_graph.rules.edges import Edge, EdgeChange
from processors.context_graph.rules.shortcuts import Shortcut, Traversal, candidates
from streams.codec import encode
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.event_types.context_graph import MEMORY_RECALLED
from streams.events import Event, event_types
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

NOON = datetime(2026, 1, 1, 12)
TOOL = "get_amortized_shortcuts"


def similar(*ids: str, weight: float = 0.8, confidence: float = 1.0) -> list[Edge]:
    """Edges between each two in a row."""
    return [Edge(min(pair), max(pair), "similar", weight, confidence) for pair in pairwise(ids)]


def walks(path: str, times: int, since: datetime = NOON) -> list[Traversal]:
    return [Traversal(tuple(path), since + timedelta(minutes=number)) for number in range(times)]


def test_a_chain_has_the_fewest_hops_and_of_these_the_heaviest() -> None:
    edges = [
        *similar("a", "b", "d", weight=0.9),
        *similar("a", "c", "d", weight=0.6),
        Edge("d", "e", "causal", 0.5),
        Edge("a", "e", "temporal", 0.1),
    ]
    assert chains("abcde", edges) == {
        "b": ("a", "b"),
        "c": ("a", "c"),
        "d": ("a", "b", "d"),
        "e": ("a", "e"),
    }


def test_a_chain_goes_over_results_only_and_is_not_endless() -> None:
    assert chains(["a", "c"], similar("a", "b", "c")) == {}
    ids = [chr(ord("a") + place) for place in range(MOST_HOPS + 2)]
    found = chains(ids, similar(*ids))
    assert len(found[ids[MOST_HOPS]]) == MOST_HOPS + 1 and ids[-1] not in found
    assert chains([], similar("a", "b")) == {} == chains(["a"], [])


def test_the_fifth_walk_of_three_hops_makes_a_candidate() -> None:
    edges = similar("a", "b", "c", "d", weight=0.5, confidence=0.75)
    assert candidates(walks("abcd", 4), edges) == []
    [found] = candidates(walks("abcd", 5), edges)
    assert found == Shortcut(("a", "b", "c", "d"), 5, pytest.approx(0.125), 0.75)
    assert found.change == EdgeChange("a", "d", "shortcut", 0.125, 0.75)
    assert candidates(walks("abc", 50), edges) == [], "two hops never"
    assert candidates(walks("abcd", 5), edges, 0.76) == []


def test_an_edge_that_has_gone_leaves_no_candidate_and_the_heaviest_of_two_counts() -> None:
    edges = similar("a", "b", "c")
    assert candidates(walks("abcd", 9), edges) == []
    edges += [Edge("d", "c", "causal", 1.0, 0.9), Edge("c", "d", "temporal", 0.3)]
    [found] = candidates(walks("abcd", 9), edges)
    assert found.combined_weight == pytest.approx(0.8 * 0.8 * 1.0) and found.min_confidence == 0.9


def test_walks_before_a_dream_made_the_shortcut_count_no_more() -> None:
    edges, made = similar("a", "b", "c", "d"), {("a", "d"): NOON + timedelta(minutes=4)}
    assert candidates(walks("abcd", 9), edges, made_at=made) == []
    [found] = candidates(walks("abcd", 10), edges, made_at=made)
    assert found.traversals == 5


def test_candidates_come_by_walks_then_weight() -> None:
    edges = [*similar("a", "b", "c", "d"), *similar("e", "f", "g", "h", weight=0.9)]
    found = candidates([*walks("abcd", 6), *walks("efgh", 6), *walks("dcba", 7)], edges)
    assert ["".join(one.path) for one in found] == ["dcba", "efgh", "abcd"]


@pytest.fixture
async def walker(agent: Agent) -> AsyncIterator[Agent]:
    """An agent whose searches are left on the log."""
    agent.door.start()
    yield agent
    await agent.door.stop()


def tell(node: EmbeddingNode, kind: str, data: dict[str, Any]) -> None:
    node.clock.time += timedelta(seconds=1)
    event = Event(f"told-{node.clock.time:%H%M%S}", "producer", kind, "default", node.clock.now(), data)
    node.process([node.store.record(encode(event_types()[kind].topic, event))])


async def test_a_search_says_over_which_results_it_came_and_a_dream_shortens_what_is_walked_often(
    walker: Agent, node: EmbeddingNode
) -> None:
    words = ["harbour tide turns noon", "harbour tide turns", "harbour tide", "harbour"]
    ids = [(await walker.call("store_memory", content=f"{text} {text}"))["fingerprintId"] for text in words]
    tell(node, EDGES_FOUND, {"edges": [
        {"source_id": one, "target_id": other, "kind": "causal", "weight": 0.8, "confidence": 0.9}
        for one, other in pairwise(ids)
    ]})  # fmt: skip
    for _ in range(4):
        rows = (await walker.call("search_graph", query=words[0]))["results"]
    assert [row["fingerprintId"] for row in rows] == ids
    assert [row.get("path") for row in rows] == [None, None, ids[:3], ids]
    answer = await walker.call(TOOL)
    assert (answer["shortcuts"], answer["total_candidates"]) == ([], 0)
    await walker.call("search_graph", query=words[0])
    answer = await walker.call(TOOL)
    assert answer["shortcuts"] == [
        {
            "source": ids[0],
            "target": ids[3],
            "hop_count": 3,
            "traversal_count": 5,
            "combined_weight": pytest.approx(0.512),
            "min_confidence": 0.9,
            "path": ids,
            "path_length": 4,
        }
    ]
    assert answer["filters_applied"] == {"min_confidence": 0.7, "min_hops": 3, "min_traversals": 5, "limit": 20}
    assert (await walker.call(TOOL, min_confidence=0.95))["total_candidates"] == 0

    made = {"source_id": ids[0], "target_id": ids[3], "kind": "shortcut", "weight": 0.512, "confidence": 0.9}
    tell(node, EDGES_CHANGED, {"dream_id": "d", "changes": [made]})
    assert (await walker.call(TOOL))["total_candidates"] == 0
    rows = (await walker.call("search_graph", query=words[0]))["results"]
    assert [row["fingerprintId"] for row in rows] == ids, "an edge alone changes no order"
    assert "path" not in rows[3]


async def test_a_path_leads_over_what_stands_for_merged_memories(walker: Agent, node: EmbeddingNode) -> None:
    query = "lantern keeper polishes brass"
    texts = [f"{query} {query}", "lantern keeper polishes", "lantern keeper polishes often", "lantern keeper"]
    first, *merged, last = [(await walker.call("store_memory", content=text))["fingerprintId"] for text in texts]
    tell(node, EDGES_FOUND, {"edges": [
        {"source_id": one, "target_id": other, "kind": "causal", "weight": 0.8, "confidence": 0.9}
        for one, other in ((first, merged[0]), (merged[1], last))
    ]})  # fmt: skip
    rows = (await walker.call("search_graph", query=query))["results"]
    assert rows[0]["fingerprintId"] == first and not any("path" in row for row in rows)
    group = {"memory_id": "whole", "content": " | ".join(texts[1:3]), "merged_from": merged}
    tell(node, MEMORIES_MERGED, {"groups": [group]})
    rows = (await walker.call("search_graph", query=query))["results"]
    paths = {row["fingerprintId"]: row.get("path") for row in rows}
    assert paths == {first: None, "whole": None, last: [first, "whole", last]}


async def test_each_request_counts_a_path_once(walker: Agent, node: EmbeddingNode) -> None:
    tell(node, EDGES_FOUND, {"edges": [
        {"source_id": one, "target_id": other, "kind": "causal", "weight": 1, "confidence": 1}
        for one, other in pairwise("abcd")
    ]})  # fmt: skip
    about = {"query_vector_id": "q", "tool": "search_graph", "results": [{"memory_id": "d"}]}
    for _ in range(4):
        tell(node, MEMORY_RECALLED, {**about, "chains": [list("abcd")] * 2})
    assert (await walker.call(TOOL))["total_candidates"] == 0
    tell(node, MEMORY_RECALLED, {**about, "chains": [list("abcd"), list("bcda")]})
    [found] = (await walker.call(TOOL, limit=1))["shortcuts"]
    assert found["traversal_count"] == 5 and found["combined_weight"] == 1


@pytest.mark.parametrize(
    ("arguments", "field", "sentence"),
    [
        ({"min_confidence": 1.01}, "min_confidence", "at most 1 is accepted"),
        ({"min_confidence": -0.1}, "min_confidence", "at least 0 is accepted"),
        ({"limit": 0}, "limit", "at least 1 is accepted"),
        ({"limit": 101}, "limit", "at most 100 is accepted"),
    ],
)
async def test_bounds_are_named(asked: Agent, arguments: dict[str, Any], field: str, sentence: str) -> None:
    refused = await asked.call(TOOL, **arguments)
    assert (refused["error_code"], refused["reason"], refused["field"]) == ("invalid_argument", "range", field)
    assert sentence in refused["message"]
