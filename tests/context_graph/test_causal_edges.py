"""The causal edges in memory are those of the store, whatever found, changed, withdrew or merged them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from processors.context_graph.read.edges import read_edges
from processors.context_graph.rules.edges import Edge, living
from storage.context_graph.causal_edges import CausalFollower
from storage.followers import MAX_VIEWS
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from tests.context_graph.test_edges import edge, tell
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

CHANGES = 60


@pytest.fixture
def node(tmp_path: Path) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path)
    yield node
    node.close()


def told(node: EmbeddingNode, follower: CausalFollower, ids: list[str], *, is_ahead: bool) -> list[Edge]:
    view = follower.view(node.store.database.cursor(), "default")
    steps = view.steps("default", ids, is_ahead=is_ahead)
    found = living((Edge(one, other, "causal", *values) for one, other, *values in steps), {})
    return sorted(found, key=lambda one: one.key)


def change(node: EmbeddingNode, ids: list[str], chance: random.Random) -> None:
    """Find, withdraw, strengthen or remove an edge, merge two memories, or do what concerns no edge."""
    one, other = chance.sample(ids[:12], 2)
    what = chance.choice(("found", "found", "found", "withdrawn", "changed", "removed", "merged", "else"))
    if what in ("found", "withdrawn"):
        weight, sure = (0.0, 1.0) if what == "withdrawn" else (chance.uniform(0.1, 1), chance.choice((0.6, 0.9)))
        edges = [edge(one, other, "causal", weight, confidence=sure), edge(one, other, "similar", 0.7)]
        tell(node, "default", EDGES_FOUND, {"edges": edges})
    elif what in ("changed", "removed"):
        changes = [edge(one, other, "causal", chance.uniform(0.1, 1), is_removed=what == "removed")]
        tell(node, "default", EDGES_CHANGED, {"dream_id": "d", "changes": changes})
    elif what == "merged":
        group = {"memory_id": f"both of {len(ids)}", "content": "both", "merged_from": [one, other]}
        tell(node, "default", MEMORIES_MERGED, {"groups": [group]})
        ids.append(group["memory_id"])
    else:
        tell(node, "another", EDGES_FOUND, {"edges": [edge(one, other, "causal", 0.5)]})


@pytest.mark.parametrize("start", range(3))
async def test_they_follow_every_change(node: EmbeddingNode, start: int) -> None:
    agent, chance, follower = Agent(node), random.Random(start), CausalFollower()
    ids = [(await agent.call("store_memory", content=f"note {n}"))["fingerprintId"] for n in range(20)]
    most = 0
    for _ in range(CHANGES):
        change(node, ids, chance)
        kept = [
            Edge(*one.key, one.weight, one.confidence)
            for one in read_edges(node.store.database.cursor(), "default", ["causal"])
        ]
        kept.sort(key=lambda one: one.key)
        ends = sorted({end for one in kept for end in one.key[:2]})
        assert told(node, follower, ends, is_ahead=True) == told(node, follower, ends, is_ahead=False) == kept
        some = ends[::2]
        assert told(node, follower, some, is_ahead=True) == [one for one in kept if one.source_id in some]
        assert told(node, follower, some, is_ahead=False) == [one for one in kept if one.target_id in some]
        most = max(most, len(kept))
    assert most > 5


async def test_what_concerns_no_edge_of_the_namespace_leaves_them_as_they_are(node: EmbeddingNode) -> None:
    follower, cursor = CausalFollower(), node.store.database.cursor()
    tell(node, "default", EDGES_FOUND, {"edges": [edge("a", "b", "causal", 0.5)]})
    before = follower.view(cursor, "default")
    await Agent(node).call("store_memory", content="Tides turn.")
    tell(node, "another", EDGES_FOUND, {"edges": [edge("a", "c", "causal", 0.5)]})
    assert follower.view(cursor, "default") is before
    assert before.steps("default", ["a"], is_ahead=True) == [("a", "b", 0.5, 1.0)]
    assert follower.view(cursor, "another").steps("another", ["a"], is_ahead=True) == [("a", "c", 0.5, 1.0)]


def test_of_many_namespaces_those_asked_for_last_are_kept(node: EmbeddingNode) -> None:
    follower, cursor = CausalFollower(), node.store.database.cursor()
    first, second = follower.view(cursor, "first"), follower.view(cursor, "second")
    for number in range(MAX_VIEWS - 1):
        follower.view(cursor, f"n{number}")
        assert follower.view(cursor, "first") is first
    assert follower.view(cursor, "second") is not second
