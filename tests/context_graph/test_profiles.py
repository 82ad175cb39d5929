"""manage_teleological_profile: what is made is read back, those of the system stay, and what cannot be is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest

from streams.event_types.context_vectors import PROFILE_CHANGED
from streams.events import Event
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import NOON
from tests.valence_kb.conftest import Agent

TOOL = "manage_teleological_profile"


async def refused(agent: Agent, **arguments: Any) -> dict[str, Any]:
    """The data of the JSON-RPC error."""
    answer = await agent.call(TOOL, **arguments)
    assert answer["success"] is False
    assert str(answer["message"]).endswith(".")
    return answer


async def test_weights_are_normalised_and_read_back(agent: Agent) -> None:
    made = await agent.call(TOOL, action="create", name="My code search", embedder_weights=[2] * 13)
    assert made["profile_id"] == "my_code_search"
    assert made["profile"]["embedder_weights"] == pytest.approx([1 / 13] * 13)
    read = await agent.call(TOOL, action="read", profile_id="my_code_search")
    assert read["profile"] == made["profile"]
    assert read["profile"]["is_system"] is False
    listed = await agent.call(TOOL, action="list")
    assert listed["count"] == 14
    assert listed["profiles"][0] == made["profile"]
    assert sum(profile["is_system"] for profile in listed["profiles"]) == 13


async def test_a_profile_is_changed_field_by_field_and_ends(agent: Agent) -> None:
    await agent.call(TOOL, action="create", name="Mine", task_type="debugging")
    changed = await agent.call(
        TOOL, action="update", profile_id="mine", group_priorities={"causal": 3, "factual": 1}, fusion_strategy="gated"
    )
    profile = changed["profile"]
    assert profile["group_priorities"]["causal"] == pytest.approx(0.75)
    assert (profile["fusion_strategy"], profile["task_type"], profile["name"]) == ("gated", "debugging", "Mine")
    assert profile["embedder_weights"][6] == pytest.approx(0.25)
    ended = await agent.call(TOOL, action="delete", profile_id="mine")
    assert ended["deleted"] is True
    assert (await refused(agent, action="read", profile_id="mine"))["reason"] == "not_found"
    again = await agent.call(TOOL, action="create", name="Mine")
    assert again["profile"]["task_type"] == "custom", "the id is free again, and nothing of the former profile is left"


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"action": "delete", "profile_id": "research"}, "read_only", "profile_id"),
        ({"action": "update", "profile_id": "research", "name": "Mine"}, "read_only", "profile_id"),
        ({"action": "create", "profile_id": "research", "name": "Mine"}, "conflict", "profile_id"),
        ({"action": "update", "profile_id": "nobody", "name": "Mine"}, "not_found", "profile_id"),
        ({"action": "delete", "profile_id": "nobody"}, "not_found", "profile_id"),
        ({"action": "read", "profile_id": "nobody"}, "not_found", "profile_id"),
        ({"action": "read"}, "missing", "profile_id"),
        ({"action": "create"}, "missing", "name"),
        ({"action": "create", "name": " "}, "missing", "name"),
        ({"action": "create", "name": "!!"}, "missing", "name"),
        ({"action": "create", "name": "Mine", "embedder_weights": [1] * 12}, "range", "embedder_weights"),
        ({"action": "create", "name": "Mine", "embedder_weights": [1] * 14}, "range", "embedder_weights"),
        ({"action": "create", "name": "Mine", "embedder_weights": [0] * 13}, "range", "embedder_weights"),
        ({"action": "create", "name": "Mine", "embedder_weights": [math.nan] * 13}, "range", "embedder_weights"),
        ({"action": "create", "name": "Mine", "embedder_weights": [-1] + [1] * 12}, "range", "embedder_weights[0]"),
        ({"action": "create", "name": "Mine", "group_priorities": {"causal": 0}}, "range", "group_priorities"),
        (
            {"action": "create", "name": "Mine", "group_priorities": {"good": 1}},
            "unknown_argument",
            "group_priorities.good",
        ),
        ({"action": "create", "name": "Mine", "task_type": "poetry"}, "enum", "task_type"),
        ({"action": "forget"}, "enum", "action"),
    ],
)
async def test_what_cannot_be_done_is_refused_with_reason_and_field(
    agent: Agent, arguments: dict[str, Any], reason: str, field: str
) -> None:
    answer = await refused(agent, **arguments)
    assert (answer["reason"], answer["field"]) == (reason, field), answer["message"]


async def test_an_id_is_taken_once_and_a_hundred_profiles_are_the_most(agent: Agent, node: EmbeddingNode) -> None:
    made = [
        Event(f"p{n}", "producer", PROFILE_CHANGED, "default", NOON, {"action": "create", "profile_id": f"p{n}"})
        for n in range(100)
    ]
    node.store.publish(*made)
    assert (await agent.call(TOOL, action="list"))["count"] == 113
    full = await refused(agent, action="create", name="One more")
    assert full["reason"] == "conflict"
    assert "100" in full["message"]
    await agent.call(TOOL, action="delete", profile_id="p7")
    assert (await agent.call(TOOL, action="create", name="One more"))["profile"]["profile_id"] == "one_more"
    assert (await refused(agent, action="create", name="p8"))["reason"] == "conflict"


async def test_the_same_request_again_has_one_effect(agent: Agent, node: EmbeddingNode) -> None:
    asked: dict[str, Any] = {"action": "create", "name": "Mine"}
    first = await agent.call(TOOL, request_id="r1", **asked)
    assert (await agent.call(TOOL, request_id="r1", **asked))["profile"] == first["profile"]
    assert node.store.sql("SELECT profiles FROM context_profile_counts") == [(1,)]


async def test_another_namespace_has_its_own_profiles(agent: Agent, node: EmbeddingNode) -> None:
    data = {"action": "create", "profile_id": "theirs", "name": "Theirs"}
    node.store.publish(Event("p", "producer", PROFILE_CHANGED, "other", NOON, data))
    assert (await refused(agent, action="read", profile_id="theirs"))["reason"] == "not_found"
    assert (await agent.call(TOOL, action="create", name="Theirs"))["profile"]["name"] == "Theirs"
