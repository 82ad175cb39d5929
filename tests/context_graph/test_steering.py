"""get_steering_feedback: duplicates and orphans lower the reward, and are named with their counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from processors.context_graph.rules.ends import merged_id_of
from processors.context_graph.rules.memories import memory_id_of
from processors.context_graph.rules.steering import Facts, Reward, health, recommendations, trend
from streams.codec import encode
from streams.event_types.context_edges import EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.topics import MEMORY
from tests.context_graph.test_edges import tell
from tests.context_graph.test_inject_context import SEA, said
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import make_event
from tests.valence_kb.conftest import Agent

GOOD = Facts(100, 100, 0, 0, 0.6, 0.6, 8, 10, 0.5, 0.5, 0, 0)


def test_the_reward_is_the_mean_of_three_scores() -> None:
    found = Reward.of(GOOD)
    assert (found.gardener, found.curator) == (1.0, pytest.approx(0.2))
    assert found.assessor == pytest.approx(9 / 12 + 0.5 - 1)
    assert found.value == pytest.approx((found.gardener + found.curator + found.assessor) / 3, abs=1e-9)
    assert (found.dominant, found.limiting, found.needs_attention) == ("gardener", "curator", False)
    assert Reward.of(replace(GOOD, connected=50)).gardener == 0.0
    empty = Reward.of(Facts(*[0] * 9, None, 0, 0))
    assert (empty.value, empty.needs_attention) == (0.0, False)


def test_fifty_duplicates_and_fifty_orphans_lower_it_and_a_merge_gives_back_what_they_took() -> None:
    worse = replace(GOOD, memories=200, connected=150, duplicates=50)
    assert Reward.of(GOOD).value - Reward.of(worse).value >= 0.1
    assert [each["action"] for each in recommendations(worse)] == ["trigger_consolidation", "trigger_dream"]
    sentences = [each["description"] for each in recommendations(worse)]
    assert "50 memories say what another one says" in sentences[0] and "50 memories have no edge" in sentences[1]
    merged = replace(worse, memories=150, connected=100, duplicates=0, merged=50)
    assert Reward.of(merged).curator == pytest.approx(Reward.of(GOOD).curator)
    assert Reward.of(merged).curator > Reward.of(worse).curator
    assert Reward.of(merged).gardener >= Reward.of(worse).gardener


def test_a_merge_alone_never_makes_the_graph_count_as_less_connected() -> None:
    """Of a group of any size, connected or not: what it becomes is one memory, connected if one of it was."""
    for memories, size in product(range(2, 12), range(2, 6)):
        for connected, of_group in product(range(memories + 1), range(size + 1)):
            if size > memories or of_group > connected or size - of_group > memories - connected:
                continue
            facts = replace(GOOD, memories=memories, connected=connected)
            left = connected - of_group + (of_group > 0)
            merged = replace(facts, memories=memories - size + 1, connected=left, merged=size)
            assert Reward.of(merged).gardener >= Reward.of(facts).gardener


@pytest.mark.parametrize(("share", "word"), [(0.71, "healthy"), (0.7, "degraded"), (0.4, "critical")])
def test_health_by_connectivity(share: float, word: str) -> None:
    assert health(share) == word


def test_the_trend_is_told_beyond_its_band() -> None:
    assert [trend(0.5, now) for now in (None, 0.51, 0.6, 0.4)] == ["stable", "stable", "improving", "worsening"]


async def test_an_empty_store_says_so(agent: Agent) -> None:
    feedback = await agent.call("get_steering_feedback")
    assert feedback["insufficient_data"] is True and feedback["reward"]["value"] == 0.0
    assert (feedback["recommendations"], feedback["priority_improvement"]) == ([], "none")


async def test_what_is_counted_is_what_the_store_holds(agent: Agent, node: EmbeddingNode) -> None:
    ids = sorted(
        [
            (await agent.call("store_memory", content=said(SEA, number), importance=number / 5))["fingerprintId"]
            for number in range(5)
        ]
    )
    before = await agent.call("get_steering_feedback")
    assert before["gardener_details"]["orphan_count"] == 5 and before["needs_immediate_attention"] is True
    edge = {"source_id": ids[0], "target_id": ids[1], "kind": "similar", "weight": 0.95, "confidence": 0.95}
    weak = {"source_id": ids[2], "target_id": ids[3], "kind": "similar", "weight": 0.05, "confidence": 0.05}
    tell(node, "default", EDGES_FOUND, {"edges": [edge, weak]})
    after = await agent.call("get_steering_feedback")
    assert (after["gardener_details"]["orphan_count"], after["gardener_details"]["connectivity"]) == (3, 0.4)
    assert after["curator_details"]["duplicate_count"] == 1 and after["curator_details"]["low_quality_count"] == 2
    assert after["priority_improvement"] == "trigger_consolidation" and "1 repeat another one" in after["summary"]
    reward = after["reward"]
    mean = (reward["gardener_score"] + reward["curator_score"] + reward["assessor_score"]) / 3
    assert reward["value"] == pytest.approx(mean, abs=1e-9)


async def store(node: EmbeddingNode, contents: Sequence[str]) -> list[str]:
    """Memories of these contents, in one batch; their ids."""
    about = {"time": node.clock.time, "namespace": "default"}
    events = [
        make_event("context.memory.stored", {"content": content}, event_id=content, **about) for content in contents
    ]
    await node.publish([encode(MEMORY.name, event) for event in events])
    return [memory_id_of(event) for event in events]


def joined(pairs: Sequence[tuple[str, str]], weight: float) -> list[dict[str, Any]]:
    about = {"kind": "similar", "weight": weight, "confidence": weight}
    return [{"source_id": one, "target_id": other, **about} for one, other in pairs]


async def test_duplicates_and_orphans_lower_the_reward_and_merging_raises_what_the_duplicates_had_lowered(
    agent: Agent, node: EmbeddingNode
) -> None:
    kept = await store(node, [f"Ship {number} has sailed." for number in range(100)])
    tell(node, "default", EDGES_FOUND, {"edges": joined(list(pairwise(kept)), 0.6)})
    good = await agent.call("get_steering_feedback")

    repeated = await store(node, [f"Ship {number} has sailed away." for number in range(50)])
    pairs = list(zip(kept, repeated, strict=False))
    tell(node, "default", EDGES_FOUND, {"edges": joined(pairs, 0.95)})
    await store(node, [f"Letter {number}." for number in range(50)])
    worse = await agent.call("get_steering_feedback")
    assert good["reward"]["value"] - worse["reward"]["value"] >= 0.1
    assert (worse["curator_details"]["duplicate_count"], worse["gardener_details"]["orphan_count"]) == (50, 50)
    said = {each["action"]: each["description"] for each in worse["recommendations"]}
    assert said["trigger_consolidation"].startswith("50 ") and said["trigger_dream"].startswith("50 ")

    groups = [
        {"memory_id": merged_id_of("default", pair), "content": f"Both {number}.", "merged_from": list(pair)}
        for number, pair in enumerate(pairs)
    ]
    tell(node, "default", MEMORIES_MERGED, {"groups": groups, "strategy": "similarity"})
    merged = await agent.call("get_steering_feedback")
    assert (merged["curator_details"]["duplicate_count"], merged["gardener_details"]["orphan_count"]) == (0, 50)
    assert merged["reward"]["curator_score"] == pytest.approx(good["reward"]["curator_score"])
    assert merged["reward"]["gardener_score"] >= worse["reward"]["gardener_score"]
    assert merged["reward"]["value"] > worse["reward"]["value"]
