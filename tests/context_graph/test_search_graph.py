"""search_graph: what is found, how near it is said to be, and what is asked wrongly."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_ingress.door import Request
from tests.context_graph.test_store_memory import FIBONACCI
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

KURAMOTO = "The Kuramoto model describes synchronization of coupled oscillators"


async def found(agent: Agent, query: str, **more: Any) -> list[dict[str, Any]]:
    answer = await agent.call("search_graph", query=query, **more)
    assert answer["success"] and answer["count"] == len(answer["results"]), answer
    return list(answer["results"])


async def test_a_memory_is_found_with_all_that_was_stored_of_it(agent: Agent) -> None:
    stored = await agent.call("store_memory", **FIBONACCI, rationale="from the kata", importance=0.9)
    [row] = await found(agent, "fibonacci function")
    assert row["fingerprintId"] == stored["fingerprintId"]
    kept = {name: row[name] for name in ("content", "modality", "tags", "importance", "rationale")}
    assert kept == FIBONACCI | {"importance": 0.9, "rationale": "from the kata"}
    assert 0 < row["similarity"] <= 1 and row["similarity"] == row["cosine"], "the model has no tokens"


async def test_a_tag_is_found_as_a_word(agent: Agent) -> None:
    stored = await agent.call("store_memory", **FIBONACCI)
    await agent.call("store_memory", content="Tides turn twice a day.")
    best, *_ = await found(agent, "recursion")
    assert best["fingerprintId"] == stored["fingerprintId"] and best["content"] == FIBONACCI["content"]


async def test_results_stand_in_the_order_of_the_engine(agent: Agent) -> None:
    for content in (KURAMOTO, "Oscillators tick.", "Tides turn twice a day.", "Bread needs salt."):
        await agent.call("store_memory", content=content)
    rows = await found(agent, "synchronization of coupled oscillators", topK=3)
    assert rows[0]["content"] == KURAMOTO and len(rows) <= 3
    assert [row["score"] for row in rows] == sorted((row["score"] for row in rows), reverse=True)


async def test_what_is_less_similar_than_asked_is_left_out_and_more_is_looked_at_for_it(agent: Agent) -> None:
    for number in range(40):
        await agent.call("store_memory", content=f"Oscillators tick, says note {number} of many others about bread.")
    await agent.call("store_memory", content=KURAMOTO)
    [row] = await found(agent, KURAMOTO, topK=1, minSimilarity=0.99)
    assert row["content"] == KURAMOTO and row["similarity"] >= 0.99
    assert len(await found(agent, KURAMOTO, topK=100)) > 20
    assert await found(agent, "quantum chromodynamics", minSimilarity=0.9) == []


async def test_only_the_modality_that_is_asked_for_is_found(agent: Agent) -> None:
    for modality in ("text", "code", "mixed"):
        await agent.call("store_memory", content=f"fibonacci as {modality}", modality=modality)
    assert [row["modality"] for row in await found(agent, "fibonacci", modality="code")] == ["code"]
    assert {row["modality"] for row in await found(agent, "fibonacci")} == {"text", "code", "mixed"}


async def test_memories_of_other_toolsets_are_not_found(agent: Agent) -> None:
    await agent.call("journal_write", content=KURAMOTO, category="insight")
    assert await found(agent, KURAMOTO) == []
    stored = await agent.call("store_memory", content=KURAMOTO)
    [row] = await found(agent, KURAMOTO)
    assert row["fingerprintId"] == stored["fingerprintId"]


async def test_a_memory_without_its_vector_yet_is_found_by_its_words(agent: Agent, node: EmbeddingNode) -> None:
    node.is_slow = True
    await agent.call("store_memory", content=KURAMOTO)
    [row] = await found(agent, "Kuramoto")
    assert (row["similarity"], row["cosine"]) == (0.0, None)


@pytest.mark.parametrize(
    ("arguments", "reason", "field", "sentence"),
    [
        ({}, "missing", "query", "`query` is missing"),
        ({"query": "  "}, "missing", "query", "`query` is blank"),
        ({"query": "x", "topK": 0}, "range", "topK", "is 0; at least 1 is accepted"),
        ({"query": "x", "topK": 101}, "range", "topK", "is 101; at most 100 is accepted"),
        ({"query": "x", "topK": 2.5}, "type", "topK", "must be an integer"),
        ({"query": "x", "minSimilarity": float("nan")}, "range", "minSimilarity", "a finite number is expected"),
        ({"query": "x", "minSimilarity": -0.5}, "range", "minSimilarity", "at least 0"),
        ({"query": "x", "modality": "video"}, "enum", "modality", "must be one of text, code"),
        ({"query": "x" * 10_001}, "range", "query", "at most 10000"),
    ],
)
async def test_what_is_asked_wrongly_is_refused_with_a_sentence_that_names_the_argument(
    agent: Agent, arguments: dict[str, Any], reason: str, field: str, sentence: str
) -> None:
    answer = await agent.door.call(agent._visitor, Request("search_graph", arguments))
    assert answer.failure is not None and (answer.failure.plane, answer.failure.rpc_code) == ("jsonrpc", -32602)
    assert sentence in answer.body["message"]
    assert (answer.body["reason"], answer.body["field"]) == (reason, field)
