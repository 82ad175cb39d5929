"""trigger_consolidation: what says the same becomes one memory, what does not stays, and nothing is lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.call import ClientConnection
from mcp_ingress.door import Visitor
from processors.context_graph.read.duplicates import find_duplicates, read_living
from processors.context_graph.rules.consolidation import (
    LivingMemory,
    Pair,
    event_group,
    fits,
    fitting,
    grouped,
    merged_text,
)
from processors.embedding.loader import load_embedder
from tests.context_graph.conftest import ModelNode
from tests.context_graph.test_ends import found, stored
from tests.valence_kb.conftest import Agent

AT = datetime(2026, 3, 1)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory, model_cache: Path) -> Iterator[ModelNode]:
    node = ModelNode(tmp_path_factory.mktemp("merging"), load_embedder("minilm", cache_dir=model_cache))
    yield node
    node.close()


@pytest.fixture
def agent(node: ModelNode, request: pytest.FixtureRequest) -> Agent:
    """An agent with a namespace of its own."""
    agent = Agent(node)
    scope = replace(agent.door.local, namespace=re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()))
    agent._visitor = Visitor(scope, ClientConnection())
    return agent


def memory(name: str, content: str, **more: Any) -> LivingMemory:
    given = {"modality": "text", "tags": (), "importance": 0.5, "rationale": None, "created_at": AT}
    return LivingMemory(**{"memory_id": name, "label": 0, "content": content, **given, **more})


def test_texts_are_joined_oldest_first_and_repeats_are_said_once() -> None:
    old = memory("b", "Tides turn.", created_at=AT)
    new = memory("a", "The tide turns.", created_at=AT + timedelta(hours=1))
    again = memory("c", "tides turn", created_at=AT + timedelta(hours=2))
    assert merged_text([again, new, old]) == "Tides turn. | The tide turns."
    merged = memory("m", "Tides turn. | The tide turns.", merged_from=["b", "a"])
    assert merged_text([merged, again]) == "Tides turn. | The tide turns."
    group = event_group("default", grouped([Pair(new, old, 0.9), Pair(again, old, 0.95)], lambda *_: True)[0])
    assert group is not None
    assert (group["merged_from"], group["similarity"], group["pairs"]) == (["b", "a", "c"], 0.9, 2)


def test_a_group_has_no_two_members_that_differ() -> None:
    a, b, c = (memory(name, name) for name in "abc")
    pairs = [Pair(a, b, 0.9), Pair(b, c, 0.95)]
    assert [len(group.members) for group in grouped(pairs, lambda *_: True)] == [3]
    [group] = grouped(pairs, lambda one, other: {one, other} != {a, c})
    assert [one.memory_id for one in group.members] == ["b", "c"]


def test_strategies_ask_for_time_and_goal() -> None:
    old, new = memory("a", "x"), memory("b", "x", created_at=AT + timedelta(hours=24))
    late = memory("c", "x", created_at=AT + timedelta(hours=24, seconds=1))
    assert fits("similarity", old, late, None) and fits("temporal", old, new, None)
    assert not fits("temporal", old, late, None) and not fits("semantic", old, new, None)
    assert fits("semantic", old, new, {"a": 0.5, "b": 0.55})
    assert not fits("semantic", old, new, {"a": 0.5, "b": 0.49})
    assert not fits("similarity", old, new, {"a": 0.5, "b": 0.56})


def test_an_event_takes_as_many_groups_as_fit() -> None:
    groups = [{"content": "x" * 100} for _ in range(5)]
    assert len(fitting(groups, 1000)) == 5
    assert len(fitting(groups, 300)) == 2
    assert fitting(groups, 50) == []


async def test_two_of_three_become_one_that_is_found_for_both(agent: Agent, node: ModelNode) -> None:
    a, b, c = await stored(
        agent,
        "The invoices of the shop are rounded half to even.",
        "The invoices of the shop are really rounded half to even.",
        "The lake is frozen from bank to bank.",
    )
    answer = await agent.call("trigger_consolidation")
    result, statistics = answer["consolidation_result"], answer["statistics"]
    assert result == {"status": "completed", "candidate_count": 1, "merged_groups": 1, "action_required": False}
    assert (statistics["memories_processed"], statistics["pairs_evaluated"]) == (3, 3)
    assert (statistics["pairs_consolidated"], statistics["memories_removed"]) == (1, 1)
    assert (statistics["strategy"], statistics["similarity_threshold"]) == ("similarity", 0.85)
    [merged] = answer["merged"]
    assert set(merged["merged_from"]) == {a, b} and merged["similarity"] >= 0.85
    assert set(await found(agent, "how are invoices rounded")) <= {merged["memory_id"], c}
    assert (await found(agent, "how are invoices rounded"))[0] == merged["memory_id"]
    texts = node.store.sql("SELECT content FROM context_memories WHERE list_contains(?, memory_id)", [a, b])
    assert len(texts) == 2, "the sources stay"
    again = await agent.call("trigger_consolidation")
    assert again["consolidation_result"]["status"] == "nothing_to_do" and again["merged"] == []
    assert again["consolidation_result"]["action_required"] is False


async def test_what_was_compared_when_the_time_is_over_counts(agent: Agent, node: ModelNode) -> None:
    await stored(agent, "The lake is frozen.", "The invoices are rounded.", "The invoices are really rounded.")
    namespace, indexes = agent._visitor.principal.namespace, node.services.indexes
    living = await node.services.reader.run(lambda cursor: read_living(cursor, namespace))
    found = find_duplicates(indexes, living, 0.8, lambda pairs: pairs, lambda: True)
    assert (len(found.pairs), found.is_complete) == (1, False)


async def test_what_differs_in_a_number_stays(agent: Agent) -> None:
    await stored(agent, "The timeout of the gateway is 30 seconds.", "The timeout of the gateway is 60 seconds.")
    answer = await agent.call("trigger_consolidation", min_similarity=0.5)
    assert answer["consolidation_result"]["candidate_count"] == 1
    assert answer["consolidation_result"]["status"] == "nothing_to_do"


async def test_only_the_same_modality_becomes_one(agent: Agent) -> None:
    text = "print the total of the invoice"
    await stored(agent, text)
    await stored(agent, f"{text} ", modality="mixed")
    assert (await agent.call("trigger_consolidation"))["consolidation_result"]["status"] == "nothing_to_do"


async def test_temporal_leaves_what_is_more_than_a_day_apart(agent: Agent, node: ModelNode) -> None:
    await stored(agent, "The ferry is late again today.")
    node.clock.time += timedelta(hours=25)
    await stored(agent, "The ferry is just late again today.")
    asked = {"strategy": "temporal"}
    assert (await agent.call("trigger_consolidation", **asked))["consolidation_result"]["status"] == "nothing_to_do"
    assert (await agent.call("trigger_consolidation"))["consolidation_result"]["merged_groups"] == 1


async def test_max_memories_are_those_stored_last(agent: Agent, node: ModelNode) -> None:
    for text in ("The bridge is closed for lorries.", "The bridge is just closed for lorries.", "Snow fell."):
        await stored(agent, text)
        node.clock.time += timedelta(minutes=1)
    assert (await agent.call("trigger_consolidation", max_memories=2))["merged"] == []
    assert (await agent.call("trigger_consolidation", max_memories=1))["statistics"]["pairs_evaluated"] == 0
    assert len((await agent.call("trigger_consolidation", max_memories=3))["merged"]) == 1


async def test_a_merged_memory_is_merged_again(agent: Agent, node: ModelNode) -> None:
    for text in ("The printer on the second floor is jammed.", "The printer on the second floor is really jammed."):
        await stored(agent, text)
        node.clock.time += timedelta(minutes=1)
    [first] = (await agent.call("trigger_consolidation"))["merged"]
    node.clock.time += timedelta(minutes=1)
    [third] = await stored(agent, "The printer on the second floor is just jammed.")
    [second] = (await agent.call("trigger_consolidation"))["merged"]
    assert set(second["merged_from"]) == {first["memory_id"], third}
    assert await found(agent, "printer jammed") == [second["memory_id"]]
    assert node.store.sql("SELECT content FROM context_memories WHERE memory_id = ?", second["memory_id"]) == [
        (
            "The printer on the second floor is jammed. | The printer on the second floor is really jammed. | "
            "The printer on the second floor is just jammed.",
        )
    ]


async def test_semantic_needs_a_goal(agent: Agent) -> None:
    answer = await agent.call("trigger_consolidation", strategy="semantic")
    assert (answer["error_code"], answer["reason"], answer["field"]) == (
        "consolidation_error",
        "no_north_star",
        "strategy",
    )
    assert "auto_bootstrap_north_star" in answer["message"]


async def test_two_calls_at_once_merge_once(agent: Agent, node: ModelNode) -> None:
    await stored(agent, "The gate of the yard squeaks.", "The gate of the yard really squeaks.")
    answers = await asyncio.gather(*(agent.call("trigger_consolidation") for _ in range(3)))
    assert sum(answer["consolidation_result"]["merged_groups"] for answer in answers) == 1


async def test_the_same_request_has_one_effect_and_one_answer(agent: Agent) -> None:
    await stored(agent, "The well in the court is dry.", "The well in the court is quite dry.")
    first = await agent.call("trigger_consolidation", request_id="once")
    second = await agent.call("trigger_consolidation", request_id="once")
    assert len(first["merged"]) == 1 and second["merged"] == first["merged"]
    assert second["consolidation_result"] == first["consolidation_result"]


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"max_memories": 0}, "range", "max_memories"),
        ({"max_memories": 10_001}, "range", "max_memories"),
        ({"min_similarity": 1.1}, "range", "min_similarity"),
        ({"min_similarity": float("nan")}, "range", "min_similarity"),
        ({"strategy": "random"}, "enum", "strategy"),
        ({"memory_ids": ["a"]}, "unknown_argument", "memory_ids"),
    ],
)
async def test_bad_arguments_get_one_sentence(agent: Agent, arguments: dict[str, Any], reason: str, field: str) -> None:
    answer = await agent.call("trigger_consolidation", **arguments)
    assert (answer["reason"], answer["field"]) == (reason, field)


async def test_a_store_that_does_not_answer_is_an_error_of_the_tool(agent: Agent, node: ModelNode) -> None:
    node.reader.is_down = True
    try:
        answer = await agent.call("trigger_consolidation")
    finally:
        node.reader.is_down = False
    assert (answer["error_code"], answer["reason"]) == ("consolidation_error", "storage")
