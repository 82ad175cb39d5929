"""store_memory: one memory for one content, in six modalities; what it does not keep it refuses with a sentence."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

import pytest

from mcp_ingress.door import Request
from mcp_ingress.toolsets.context_graph.embedders import available_count
from processors.context_graph.rules.memories import memory_id_of
from streams.codec import encode
from streams.event_types.context_graph import MEMORY_INJECTED, MEMORY_RECALLED, MEMORY_STORED
from streams.events import Event
from streams.topics import INVOCATIONS
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import NOON
from tests.valence_kb.conftest import Agent

FIBONACCI = {
    "content": "function fibonacci(n) { return n <= 1 ? n : fibonacci(n-1) + fibonacci(n-2); }",
    "modality": "code",
    "tags": ["algorithm", "recursion", "math"],
}
OVERVIEW = {
    "content": "Project overview: A Rust MCP server implementing bio-nervous context graph with GWT consciousness...",
    "rationale": "Initial project understanding for autonomous operation",
    "importance": 0.8,
}
IMAGE = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAA" * 4


def memories(node: EmbeddingNode, *columns: str) -> list[tuple[Any, ...]]:
    return node.store.sql(f"SELECT {', '.join(columns)} FROM context_memories ORDER BY created_at")


async def test_the_printed_requests_are_kept_as_they_were_sent(agent: Agent, node: EmbeddingNode) -> None:
    code, overview = await agent.call("store_memory", **FIBONACCI), await agent.call("store_memory", **OVERVIEW)
    assert code["deduplicated"] is overview["deduplicated"] is False and "utl" not in code
    assert (code["embedderCount"], code["embeddingLatencyMs"]) == (available_count(node.services), None)
    assert memories(node, "memory_id", "content", "modality", "tags", "importance", "rationale", "times") == [
        (code["fingerprintId"], FIBONACCI["content"], "code", FIBONACCI["tags"], 0.5, None, 1),
        (overview["fingerprintId"], OVERVIEW["content"], "text", [], 0.8, OVERVIEW["rationale"], 1),
    ]
    [(found,)] = node.store.sql("SELECT content_hash FROM context_memories WHERE modality = 'code'")
    assert found == hashlib.blake2b(FIBONACCI["content"].encode(), digest_size=32).hexdigest()
    rows = node.store.sql("SELECT memory_id, kind, toolset FROM memories WHERE toolset = 'context_graph' ORDER BY kind")
    assert rows == [
        (code["fingerprintId"], "code", "context_graph"),
        (overview["fingerprintId"], "text", "context_graph"),
    ]


@pytest.mark.process
async def test_the_same_content_fifty_times_at_once_is_one_memory_with_all_tags_and_the_highest_importance(
    agent: Agent, node: EmbeddingNode
) -> None:
    told = [
        agent.call("store_memory", content="Tides turn.", importance=(n + 30) % 50 / 49, tags=[f"t{n % 5}", "sea"])
        for n in range(50)
    ]
    answers = await asyncio.gather(*told)
    assert len({answer["fingerprintId"] for answer in answers}) == 1
    assert sorted(answer["deduplicated"] for answer in answers) == [False] + [True] * 49
    assert memories(node, "tags", "importance", "times") == [(["t0", "sea", "t1", "t2", "t3", "t4"], 1.0, 50)]
    tags = node.store.sql("SELECT tag FROM document_tags WHERE record_id = ?", answers[0]["fingerprintId"])
    assert {tag for (tag,) in tags} == {"sea", "t0", "t1", "t2", "t3", "t4"}
    assert node.store.sql("SELECT count(*) FROM documents") == [(1,)]


async def test_fifty_copies_in_one_batch_are_one_memory_too(node: EmbeddingNode) -> None:
    told = [
        Event(
            f"e{n}",
            "producer",
            MEMORY_STORED,
            "default",
            NOON,
            {"content": "Tides turn.", "importance": (n + 30) % 50 / 49},
        )
        for n in range(50)
    ]
    node.store.publish(*told)
    assert memories(node, "memory_id", "importance", "times") == [(memory_id_of(told[0]), 1.0, 50)]
    outcomes = node.store.sql("SELECT count(*) FROM outcomes WHERE result->>'deduplicated' = 'true'")
    assert outcomes == [(49,)]


async def test_content_that_differs_in_one_letter_is_another_memory(agent: Agent, node: EmbeddingNode) -> None:
    for content in ("Tides turn.", "Tides turn", "tides turn."):
        assert (await agent.call("store_memory", content=content))["deduplicated"] is False
    assert len(memories(node, "memory_id")) == 3


async def test_of_two_bodies_under_one_request_id_the_first_stands(agent: Agent, node: EmbeddingNode) -> None:
    first = await agent.call("store_memory", content="Tides turn.", request_id="one")
    assert await agent.call("store_memory", content="Tides turn.", request_id="one") | {"freshness": 0} == first | {
        "freshness": 0
    }
    second = await agent.call("store_memory", content="Winds turn.", request_id="one")
    assert second["error_code"] == "invalid_argument" and "used before" in second["message"]
    assert second["reason"] == "conflict"
    assert memories(node, "content", "times") == [("Tides turn.", 1)]


@pytest.mark.parametrize(
    ("arguments", "reason", "field", "sentence"),
    [
        ({}, "missing", "content", "`content` is missing"),
        ({"content": " \n"}, "missing", "content", "`content` is blank"),
        ({"content": 5}, "type", "content", "must be a text"),
        ({"content": "x", "importance": 1.1}, "range", "importance", "is 1.1; at most 1 is accepted"),
        ({"content": "x", "importance": -0.1}, "range", "importance", "at least 0 is accepted"),
        ({"content": "x", "importance": float("nan")}, "range", "importance", "a finite number is expected"),
        ({"content": "x", "modality": "video"}, "enum", "modality", "must be one of text, code"),
        ({"content": "x", "tags": "math"}, "type", "tags", "must be a list"),
        ({"content": "x", "tags": ["a"] * 51}, "range", "tags", "at most 50"),
        ({"content": "x", "tag": ["a"]}, "unknown_argument", "tag", "Did you mean `tags`?"),
        ({"content": "x", "rationale": " "}, "missing", "rationale", "`rationale` is blank"),
        ({"content": IMAGE, "modality": "image"}, "missing", "content", "say in `rationale` or `tags` what it shows"),
        ({"content": "ä" * (1 << 20)}, "range", "content", "has 2097152 bytes of UTF-8; at most 1048576"),
    ],
)
async def test_what_cannot_be_kept_is_refused_with_a_sentence_that_names_the_argument(
    asked: Agent, arguments: dict[str, Any], reason: str, field: str, sentence: str
) -> None:
    answer = await asked.door.call(asked._visitor, Request("store_memory", arguments))
    assert answer.failure is not None and (answer.failure.plane, answer.failure.rpc_code) == ("jsonrpc", -32602)
    assert sentence in answer.body["message"]
    assert (answer.body["reason"], answer.body["field"]) == (reason, field)
    assert answer.body["remedy"] and not asked.node.published


async def test_what_a_producer_sends_is_kept_or_refused_as_what_the_tool_is_given(node: EmbeddingNode) -> None:
    assert node.request("context.memory.stored", content="Tides turn.", tags=[" sea ", "", "sea"])[0] == "applied"
    assert memories(node, "tags", "importance", "modality", "session_id") == [(["sea"], 0.5, "text", None)]
    status, message, _ = node.request("context.memory.stored", content="  ")
    assert status == "refused" and message == "The argument `content` is blank; it needs some text."
    status, message, _ = node.request("context.memory.stored", content=IMAGE, modality="image")
    assert status == "refused" and "say in `rationale` or `tags` what it shows" in str(message)


async def test_what_is_searched_by_meaning_is_the_content_without_rationale_and_tags(
    agent: Agent, node: EmbeddingNode
) -> None:
    await agent.call("store_memory", content="Tides turn.", rationale="Asked by Jo", tags=["sea", "moon"])
    assert memories(node, "searched") == [(None,)]
    assert node.store.sql("SELECT text FROM documents") == [("Tides turn.\nsea, moon",)]


async def test_of_a_picture_that_is_bytes_what_was_said_of_it_is_searched(agent: Agent, node: EmbeddingNode) -> None:
    said = {"rationale": "The lighthouse at dusk", "tags": ["photo"]}
    await agent.call("store_memory", content=IMAGE, modality="image", **said)
    assert memories(node, "searched", "content") == [("The lighthouse at dusk\nphoto", IMAGE)]


async def test_a_memory_belongs_to_the_session_that_its_connection_has_open(agent: Agent, node: EmbeddingNode) -> None:
    await agent.call("session_open", session_id="2026-01-05-a", goal="Learn")
    await agent.call("store_memory", content="Tides turn.")
    assert memories(node, "session_id") == [("2026-01-05-a",)]


async def test_what_searches_returned_is_counted_as_access(agent: Agent, node: EmbeddingNode) -> None:
    told = [(await agent.call("store_memory", content=content))["fingerprintId"] for content in ("a b", "c d", "a b")]
    results = [
        {"memory_id": told[1], "similarity": 0.5, "alignments": [0.1, None] + [0.0] * 11},
        {"memory_id": told[0]},
    ]
    data = {"query_vector_id": "q", "tool": "search_graph", "results": results}
    recalled = Event("r1", "producer", MEMORY_RECALLED, "default", node.clock.now(), data)
    node.process([node.store.record(encode(INVOCATIONS.name, recalled))])
    assert node.store.sql("SELECT memory_id, rank, similarity, alignments[2] FROM context_recalls ORDER BY rank") == [
        (told[1], 1, 0.5, None),
        (told[0], 2, None, None),
    ]
    states = node.store.sql("SELECT memory_id, access_count FROM context_memory_states")
    assert dict(states) == {told[0]: 2, told[1]: 1}


def test_the_types_of_the_events_are_those_that_producers_are_told() -> None:
    assert (MEMORY_STORED, MEMORY_INJECTED) == (
        "thalweg.context.memory.stored.v1",
        "thalweg.context.memory.injected.v1",
    )
