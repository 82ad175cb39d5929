"""An edge that was withdrawn (weight 0) or removed counts nowhere, whoever reads edges."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from processors.context_graph.read.dream_slices import read_shared_causes
from processors.context_graph.read.dreams import read_counted
from processors.context_graph.read.edges import edges_among, edges_of, read_edges
from processors.context_graph.read.pruning import read_standings
from processors.context_graph.read.steering import CountedFollower, read_facts
from processors.context_graph.rules.chains import chains
from processors.context_graph.rules.dream_report import DreamReport
from processors.context_graph.rules.hebb import replay
from storage.context_graph.causal_edges import CausalFollower
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_graph import MEMORY_RECALLED
from tests.context_graph.test_edges import edge, tell
from tests.context_graph.test_fingerprints import reader
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

NAMES = ("dam", "rain", "flood", "cellar", "budget", "owl")
WAYS = ("withdrawn", "removed")
FAR = float("inf")


@pytest.fixture(scope="module", params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, way: str) -> Iterator[EmbeddingNode]:
    node = EmbeddingNode(tmp_path_factory.mktemp(way))
    yield node
    node.close()


@pytest.fixture(scope="module")
def agent(node: EmbeddingNode) -> Agent:
    return Agent(node)


def causes(ids: Mapping[str, str], *pairs: tuple[str, str], weight: float) -> dict[str, Any]:
    sure = 1.0 if weight == 0 else 0.9
    return {"edges": [edge(ids[one], ids[other], "causal", weight, confidence=sure) for one, other in pairs]}


@pytest.fixture(scope="module")
async def ids(node: EmbeddingNode, agent: Agent, way: str) -> Mapping[str, str]:
    """dam → rain → flood → cellar → budget; then nothing causes the flood, and the rain causes no budget any more."""
    texts = {name: f"The {name} is what this is about, number {place}." for place, name in enumerate(NAMES)}
    found = {name: (await agent.call("store_memory", content=text))["fingerprintId"] for name, text in texts.items()}
    gone = (("rain", "flood"), ("rain", "budget"))
    tell(node, "default", EDGES_FOUND, causes(found, *pairwise(NAMES[:5]), gone[1], weight=0.8))
    if way == "withdrawn":
        tell(node, "default", EDGES_FOUND, causes(found, *gone, weight=0.0))
    else:
        changes = [edge(found[one], found[other], "causal", 0.8, is_removed=True) for one, other in gone]
        tell(node, "default", EDGES_CHANGED, {"dream_id": "d", "changes": changes})
    return found


def test_no_reader_of_edges_returns_it(node: EmbeddingNode, ids: Mapping[str, str]) -> None:
    cursor, every = node.store.database.cursor(), list(ids.values())
    kept = {(ids[one], ids[other]) for one, other in (("dam", "rain"), ("flood", "cellar"), ("cellar", "budget"))}
    readers = (
        read_edges(cursor, "default", ["causal"]),
        edges_of(cursor, "default", every, ["causal"]),
        [one for one in edges_among(cursor, "default", every) if one.kind == "causal"],
    )
    assert [{one.key[:2] for one in found} for found in readers] == [kept] * len(readers)
    causal = CausalFollower().view(cursor, "default")
    assert [{one[:2] for one in causal.steps("default", every, is_ahead=way)} for way in (True, False)] == [kept, kept]
    states = node.store.sql("SELECT source_id, target_id FROM context_edge_states WHERE kind = 'causal'")
    assert set(states) == kept


async def test_it_is_on_no_path_of_an_inference(agent: Agent, ids: Mapping[str, str]) -> None:
    ahead = {"source": ids["rain"], "target": ids["flood"]}
    assert (await agent.call("omni_infer", direction="forward", **ahead))["results"] == []
    assert (await agent.call("omni_infer", direction="backward", source=ids["flood"], target=ids["rain"]))[
        "results"
    ] == []
    found = await agent.call("omni_infer", direction="abduction", source=ids["budget"])
    assert {row["target"] for row in found["results"]} == {ids["flood"], ids["cellar"]}


def test_no_result_of_a_search_is_reached_over_it(node: EmbeddingNode, ids: Mapping[str, str]) -> None:
    some = [ids[name] for name in ("dam", "rain", "flood")]
    edges = [one for one in edges_among(node.store.database.cursor(), "default", some) if one.kind == "causal"]
    assert chains(some, edges) == {ids["rain"]: (ids["dam"], ids["rain"])}


async def test_a_path_over_it_makes_no_shortcut(node: EmbeddingNode, agent: Agent, ids: Mapping[str, str]) -> None:
    whole = [ids[name] for name in ("dam", "rain", "flood", "cellar")]
    left = [ids[name] for name in ("flood", "cellar", "budget", "owl")]
    tell(node, "default", EDGES_FOUND, {"edges": [edge(ids["budget"], ids["owl"], "causal", 0.8, confidence=0.9)]})
    for _ in range(5):
        about = {"query_vector_id": "q", "tool": "search_graph", "results": [{"memory_id": whole[-1]}]}
        tell(node, "default", MEMORY_RECALLED, {**about, "chains": [whole, left]})
    tell(node, "default", EDGES_FOUND, causes(ids, ("budget", "owl"), weight=0.0))
    assert (await agent.call("get_amortized_shortcuts", min_confidence=0.6))["shortcuts"] == []


def test_a_dream_neither_strengthens_it_nor_joins_by_it(node: EmbeddingNode, ids: Mapping[str, str], way: str) -> None:
    cursor, every = node.store.database.cursor(), frozenset(ids.values())
    changed = {
        (one.source_id, one.target_id)
        for one in replay(edges_among(cursor, "default", every), dict.fromkeys(every, 1.0))
    }
    assert (ids["dam"], ids["rain"]) in changed and (ids["rain"], ids["flood"]) not in changed
    assert read_shared_causes(cursor, "default", every) == [], "flood and budget have no cause in common"
    if way == "withdrawn":
        late = {"dream_id": "late", "changes": [edge(ids["rain"], ids["flood"], "causal", 0.81)]}
        tell(node, "default", EDGES_CHANGED, late)
        raw = "SELECT weight FROM context_edges WHERE kind = 'causal' AND source_id = ? AND target_id = ?"
        assert node.store.sql(raw, ids["rain"], ids["flood"]) == [(0.0,)], "read by a dream before it was withdrawn"
        assert node.store.sql("SELECT * FROM context_edge_changes WHERE dream_id = 'late'") == []


def test_it_is_counted_nowhere(node: EmbeddingNode, ids: Mapping[str, str], way: str) -> None:
    cursor = node.store.database.cursor()
    [(states,)] = node.store.sql("SELECT count(*) FROM context_edge_states")
    report = read_counted(cursor, "default", "d", DreamReport(""))
    pruned = 2 if way == "removed" else 0
    assert report.nrem_report.compression_ratio == pytest.approx((states + pruned) / states, abs=1e-6)
    standings, _ = read_standings(reader(node), node.clock.now().replace(tzinfo=None), FAR)
    of = {one.memory_id: one.connections for one in standings}
    other = node.store.sql("SELECT source_id, target_id FROM context_edge_states")
    assert of == {one: sum(one in pair for pair in other) for one in ids.values()}
    facts = read_facts(cursor, CountedFollower(), "default", 0.5)
    assert facts.connected == len({one for pair in other for one in pair})
