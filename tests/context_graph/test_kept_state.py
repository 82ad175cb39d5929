"""What tools keep from call to call: after each event it is what a new reading of the store would find."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest

from mcp_ingress.toolsets.context_graph import warm
from processors.context_graph.read import candidates as candidates_module
from processors.context_graph.read import corrections as corrections_module
from processors.context_graph.read.candidates import Kernels, SampleCandidates, read_candidates
from processors.context_graph.read.corrections import ProbeQueries, probes
from processors.context_graph.read.drift import DriftCache, DriftReader
from processors.context_graph.read.goals import Purposes, read_north_star
from processors.context_graph.read.steering import CountedFollower, CountedMemories
from processors.context_graph.rules.ends import merged_id_of
from processors.context_graph.rules.goals import background
from processors.embedding.model import encode_documents
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from tests.context_graph.sleeper import Sleeper
from tests.context_graph.test_edges import edge, tell
from tests.context_graph.test_ends import merging, publish, stored
from tests.context_graph.test_fingerprints import reader
from tests.patience import SOON_S
from tests.schema import migrated_home
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent
from thalweg.process.node import Node
from thalweg.settings import Settings

TEXTS = [f"The tide turns at the harbour and the ferry waits, case {number}." for number in range(6)]


class WatchedFollower(CountedFollower):
    """It notes how often everything was read."""

    loads = 0

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> CountedMemories:
        self.loads += 1
        return super().load(cursor, namespace)


class Counts:
    """What one follower says from event to event, beside what a new one reads."""

    def __init__(self, node: EmbeddingNode) -> None:
        self.cursor, self.live = node.store.database.cursor(), WatchedFollower()

    def same(self) -> tuple[int, int, int, int]:
        """Memories, connected, duplicates and those of low quality; asserts that both say the same of each memory."""
        live, anew = self.live.view(self.cursor, "default"), CountedFollower().view(self.cursor, "default")
        for one, other in zip(live, anew, strict=True):
            np.testing.assert_array_equal(one, other)
        assert live.counted == anew.counted
        counted = live.counted
        return counted.memories, counted.connected, counted.duplicates, counted.low_quality


async def test_counts_follow_stores_edges_and_removals_without_reading_all_again(
    agent: Agent, node: EmbeddingNode
) -> None:
    counts = Counts(node)
    assert counts.same() == (0, 0, 0, 0), "an empty store"
    ids = sorted(await stored(agent, *TEXTS, importance=0.1))
    low = counts.same()[3]
    edges = [edge(ids[0], ids[1], weight=0.95), edge(ids[1], ids[2], weight=0.5), edge(ids[2], ids[3], weight=0.05)]
    tell(node, "default", EDGES_FOUND, {"edges": edges})
    assert counts.same() == (6, 3, 1, low)
    tell(node, "default", EDGES_CHANGED, {"dream_id": "d", "changes": [edge(ids[1], ids[2], is_removed=True)]})
    assert counts.same() == (6, 2, 1, low), "a removed edge joins nothing"
    tell(node, "default", EDGES_CHANGED, {"dream_id": "d", "changes": [edge(ids[0], ids[1], weight=0.4)]})
    assert counts.same() == (6, 2, 0, low), "a dream wore the edge that made a duplicate"
    [text] = node.store.sql("SELECT content FROM context_memories WHERE memory_id = ?", ids[5])
    await stored(agent, *text, importance=1.0)
    assert low == 6 and counts.same()[3] == 5, "stored again it matters more"
    await stored(agent, "The bread dough rises overnight.")
    assert counts.same() == (7, 2, 0, 5) and counts.live.loads == 1


async def test_counts_of_merged_memories_are_those_of_what_stands_for_them(agent: Agent, node: EmbeddingNode) -> None:
    counts, ids = Counts(node), await stored(agent, *TEXTS)
    tell(node, "default", EDGES_FOUND, {"edges": [edge(ids[0], ids[1], weight=0.95), edge(ids[1], ids[2])]})
    assert counts.same()[:3] == (6, 3, 1)
    await publish(node, merging(*ids[:2]))
    assert counts.same()[:3] == (5, 2, 0), "what hung at one of both hangs at what they became"
    tell(node, "default", EDGES_FOUND, {"edges": [edge(ids[0], ids[4], weight=0.95)]})
    assert counts.same()[:3] == (5, 3, 1), "an edge that is found at a merged memory"
    await stored(agent, TEXTS[0], importance=1.0)
    assert counts.same()[0] == 5 and counts.live.loads == 2
    assert merged_id_of("default", ids[:2]) not in ids


def candidates(node: EmbeddingNode) -> SampleCandidates:
    assert node.embedder is not None
    return read_candidates(reader(node), Kernels(), encode_documents(node.embedder, background()))


def described(found: SampleCandidates) -> list[Mapping[str, Any]]:
    return [one.found("") for one in (found.whole, *found.clusters) if one is not None]


async def test_candidates_for_goals_stay_until_a_memory_comes_or_ends(agent: Agent, node: EmbeddingNode) -> None:
    ids = await stored(agent, *TEXTS)
    found = candidates(node)
    tell(node, "default", EDGES_FOUND, {"edges": [edge(ids[0], ids[1])]})
    assert candidates(node) is found, "an edge makes no other candidates"
    await stored(agent, "The tide turns late at the harbour today.")
    grown = candidates(node)
    assert (found.memories, grown.memories) == (6, 7)
    await publish(node, merging(*ids[:2]))
    merged = candidates(node)
    assert merged.memories == 6 and merged_id_of("default", ids[:2]) in described(merged)[0]["member_ids"]
    node.indexes.records.clear_caches()
    assert described(candidates(node)) == described(merged), "as after a restart"


@pytest.mark.parametrize("has_merge", [False, True])
async def test_trial_searches_are_made_anew_once_they_may_find_something_else(
    agent: Agent, node: EmbeddingNode, has_merge: bool
) -> None:
    ids = await stored(agent, *TEXTS)
    await agent.call("auto_bootstrap_north_star", confidence_threshold=0)
    queries, cursor = ProbeQueries().encoded(node.embedder), node.store.database.cursor()

    def tried() -> list[Any]:
        goal = read_north_star(cursor, "default")
        assert goal is not None
        return probes(DriftReader(reader(node), Purposes(), DriftCache(), goal), queries)

    first = tried()
    assert len(first) > 0 and tried() is first
    await agent.call("trigger_drift_correction", force=True)
    assert tried() is first, "a correction reorders results, which are tried without it"
    await (publish(node, merging(*ids[:2])) if has_merge else stored(agent, "A letter from the harbour office came."))
    later = tried()
    node.indexes.records.clear_caches()
    assert later is not first
    for one, other in zip(later, tried(), strict=True):
        np.testing.assert_array_equal(one.scores, other.scores)
        np.testing.assert_array_equal(one.aligned, other.aligned)


async def test_a_node_has_counted_a_large_namespace_before_it_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, load = list[str](), CountedFollower.load

    def noted(self: CountedFollower, cursor: duckdb.DuckDBPyConnection, namespace: str) -> CountedMemories:
        loaded.append(namespace)
        return load(self, cursor, namespace)

    monkeypatch.setattr(CountedFollower, "load", noted)
    monkeypatch.setattr(CountedFollower, "warm_rows", 1)
    settings = Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=1)
    node = Node(settings)
    await node.start()
    await Sleeper(node).remember("The tide turns at the harbour.")
    await node.stop()
    loaded.clear()
    node = Node(settings)
    await node.start()
    async with asyncio.timeout(SOON_S):
        while "default" not in loaded:
            await asyncio.sleep(0.01)
    async with asyncio.timeout(SOON_S):
        while node.running.services.part(warm.QuietContents).seen is None:
            await asyncio.sleep(0.01)
    answer = await Sleeper(node).call("get_steering_feedback")
    await node.stop()
    assert "reward" in answer and loaded.count("default") == 1


class ReadCounts:
    """How often memories were grouped, and tried by searches."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._kinds = list[str]()
        monkeypatch.setattr(warm, "LEAST_MEMORIES", len(TEXTS))
        for module, name in ((candidates_module, "read_sample"), (corrections_module, "_probes")):
            monkeypatch.setattr(module, name, self._noted(name, getattr(module, name)))

    def _noted(self, name: str, read: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*arguments: Any) -> Any:
            self._kinds.append(name)
            return read(*arguments)

        return noted

    def fresh(self) -> list[str]:
        """What was read since this was asked last."""
        found, self._kinds[:] = list(self._kinds), []
        return found


async def test_goals_and_corrections_are_computed_while_nothing_is_stored_and_no_call_waits(
    agent: Agent, node: EmbeddingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored(agent, *TEXTS[:-1])
    await agent.call("auto_bootstrap_north_star", confidence_threshold=0)
    await stored(agent, TEXTS[-1])
    reads, services = ReadCounts(monkeypatch), node.services
    await warm.warm_goals(services)
    assert reads.fresh() == [], "what was stored in the last minute may not be the last"
    await warm.warm_goals(services)
    assert reads.fresh() == ["read_sample", "_probes"]
    await warm.warm_goals(services)
    themes, correction = await agent.call("discover_sub_goals"), await agent.call("trigger_drift_correction")
    assert reads.fresh() == []
    node.indexes.records.clear_caches()
    for tool, known in (("discover_sub_goals", themes), ("trigger_drift_correction", correction)):
        again = await agent.call(tool)
        assert {**again, "freshness": None} == {**known, "freshness": None}, "as without"
    assert reads.fresh() == ["read_sample", "_probes"]


async def test_nothing_is_computed_for_a_small_namespace_or_before_a_goal(
    agent: Agent, node: EmbeddingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = ReadCounts(monkeypatch)
    await stored(agent, *TEXTS)
    for _ in range(2):
        await warm.warm_goals(node.services)
    await agent.call("auto_bootstrap_north_star", confidence_threshold=0)
    reads.fresh()
    monkeypatch.setattr(warm, "LEAST_MEMORIES", len(TEXTS) + 1)
    node.indexes.records.clear_caches()
    for _ in range(2):
        await warm.warm_goals(node.services)
    assert reads.fresh() == []
