"""discover_sub_goals: the themes of the memories, each as a goal under another one."""

from __future__ import annotations

from typing import Any

import pytest

from tests.context_graph.test_bootstrap import of_namespace
from tests.context_graph.test_ends import merging, publish, stored
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TOOL, BOOTSTRAP = "discover_sub_goals", "auto_bootstrap_north_star"
TIDES = [f"The tide turns at the harbour and the ferry waits, case {number}." for number in range(6)]
BREAD = [f"Bread dough rises overnight before the oven bakes it, loaf {number}." for number in range(6)]


@pytest.fixture
async def themes(agent: Agent) -> dict[str, str]:
    """Twelve memories of two themes: id -> the first letter of its theme. The North Star is bootstrapped."""
    texts = [text for pair in zip(TIDES, BREAD, strict=True) for text in pair]
    ids = dict(zip(await stored(agent, *texts), (text.split()[0] for text in texts), strict=True))
    await agent.call(BOOTSTRAP, confidence_threshold=0)
    return ids


def members(node: EmbeddingNode, goal_id: str) -> list[str]:
    [(ids,)] = node.store.sql("SELECT member_ids FROM context_goals WHERE goal_id = ?", goal_id)
    return list(ids)


async def discovered(agent: Agent, **arguments: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await agent.call(TOOL, **arguments))["discovered_goals"]
    return found


async def test_two_themes_are_two_goals_of_one_kind_each(
    agent: Agent, node: EmbeddingNode, themes: dict[str, str]
) -> None:
    answer = await agent.call(TOOL)
    goals = answer["discovered_goals"]
    assert len(goals) >= 2
    for goal in goals:
        kinds = {themes[identity] for identity in members(node, goal["goal_id"])}
        assert len(kinds) == 1, "no goal mixes the themes"
        assert goal["description"].split()[0] in kinds
        assert goal["confidence"] >= 0.6 and goal["member_count"] == len(members(node, goal["goal_id"]))
        assert goal["level"] in ("Strategic", "Tactical", "Operational")
    assert 6 in [goal["member_count"] for goal in goals], "one theme is whole"
    assert answer["cluster_analysis"]["clusters_evaluated"] == answer["cluster_analysis"]["clusters_found"] >= 2
    north_star = answer["discovery_metadata"]["parent_goal_id"]
    assert answer["discovery_metadata"] == {
        "memories_analyzed": 12,
        "parent_goal_id": north_star,
        "min_confidence": 0.6,
    }
    links = {link["child_id"]: link for link in answer["hierarchy_relationships"]}
    for goal in goals:
        assert goal.get("parent_goal_id") == (north_star if goal["goal_id"] in links else None)
    assert all(link["alignment"] >= 0.5 and link["parent_id"] == north_star for link in links.values()) and links


async def test_the_numbers_asked_for_are_kept_to(agent: Agent, themes: dict[str, str]) -> None:
    every = await discovered(agent, min_confidence=0, max_goals=20)
    assert [goal["goal_id"] for goal in await discovered(agent, min_confidence=0, max_goals=1)] == [every[0]["goal_id"]]
    least = max(goal["confidence"] for goal in every)
    assert all(goal["confidence"] >= least for goal in await discovered(agent, min_confidence=least))
    assert await discovered(agent, min_confidence=1.0) == []


async def test_a_theme_found_again_keeps_its_id_and_nothing_is_kept_twice(
    agent: Agent, node: EmbeddingNode, themes: dict[str, str]
) -> None:
    first = await discovered(agent)
    count = node.store.sql("SELECT count(*) FROM context_goals")
    assert await discovered(agent) == first
    assert node.store.sql("SELECT count(*) FROM context_goals") == count


async def test_under_a_theme_its_own_memories_are_looked_at(
    agent: Agent, node: EmbeddingNode, themes: dict[str, str]
) -> None:
    [whole] = [goal for goal in await discovered(agent) if goal["member_count"] == 6][:1]
    answer = await agent.call(TOOL, parent_goal_id=whole["goal_id"], min_confidence=0)
    assert answer["discovery_metadata"]["memories_analyzed"] == 6
    for goal in answer["discovered_goals"]:
        assert set(members(node, goal["goal_id"])) <= set(members(node, whole["goal_id"]))
    ids = members(node, whole["goal_id"])
    await publish(node, merging(ids[0], ids[1], content="Two of them."))
    answer = await agent.call(TOOL, parent_goal_id=whole["goal_id"], min_confidence=0)
    assert answer["discovery_metadata"]["memories_analyzed"] == 5, "the merged one in the place of two"


async def test_goals_are_nodes_and_merged_memories_are_not(
    agent: Agent, node: EmbeddingNode, themes: dict[str, str]
) -> None:
    found = len(await discovered(agent, max_goals=1))
    ids = list(themes)
    await publish(node, merging(ids[0], ids[2], content="Two of them."))
    status = await agent.call("get_memetic_status")
    assert status["nodeCount"] == 12 - 1 + 1 + found, "eleven memories, the North Star and the theme"
    assert sum(status["quadrantCounts"].values()) == 11


async def test_what_cannot_be_looked_for_is_refused(agent: Agent) -> None:
    failed = await agent.call(TOOL)
    assert (failed["error_code"], failed["reason"]) == ("subgoal_error", "no_north_star")
    assert "auto_bootstrap_north_star" in failed["remedy"]
    await stored(agent, *TIDES[:2])
    await agent.call(BOOTSTRAP, confidence_threshold=0)
    assert (await agent.call(TOOL))["reason"] == "insufficient_data"
    for unknown in ("", "no such goal", "00000000-0000-5000-8000-000000000000", "g" * 5_000):
        failed = await agent.call(TOOL, parent_goal_id=unknown)
        assert (failed["error_code"], failed["reason"], failed["field"]) == (
            *("subgoal_error", "not_found"),
            "parent_goal_id",
        )
    assert agent.door.inventory.toolsets["context_graph"].errors.rpc_code("subgoal_error", is_refusal=True) == -32115


async def test_a_goal_of_another_namespace_is_none_of_ones_own(agent: Agent, themes: dict[str, str]) -> None:
    goal = (await agent.call(BOOTSTRAP))["bootstrap_result"]["goal_id"]
    other = of_namespace(agent.node, "other")
    await stored(other, *TIDES)
    await other.call(BOOTSTRAP, confidence_threshold=0)
    assert (await other.call(TOOL, parent_goal_id=goal))["reason"] == "not_found"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"max_goals": 0}, "max_goals"), ({"max_goals": 21}, "max_goals"), ({"min_confidence": -0.1}, "min_confidence")],
)
async def test_bad_arguments_are_refused_by_name(asked: Agent, arguments: dict[str, Any], field: str) -> None:
    failed = await asked.call(TOOL, **arguments)
    assert failed["field"] == field and failed["error_code"] == "invalid_argument"


async def test_searches_are_held_against_the_goal_once_there_is_one(
    agent: Agent, node: EmbeddingNode, themes: dict[str, str]
) -> None:
    """The purpose was the centre of all memories; now it is that of a goal, and a stored vector says so."""
    computed = await agent.call("compute_teleological_vector", content="The tide turns.")
    assert computed["vector"]["provisional"] is False
    [row] = [
        row
        for row in (await agent.call("search_graph", query=BREAD[0], topK=1))["results"]
        if row["content"] == BREAD[0]
    ]
    assert 0 < row["thetaToNorthStar"] <= 1 and 0 <= row["purposeAlignment"] <= 1
    other = of_namespace(node, "other")
    await stored(other, *TIDES)
    assert (await other.call("compute_teleological_vector", content="The tide."))["vector"]["provisional"] is True
