"""Memories that were merged: the new one stands for them, in searches, tools and what is stored again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from mcp_ingress.toolsets.memory.resources.memory import find_text
from processors.context_graph.read.ends import followed, followed_all
from processors.context_graph.rules.ends import merged_id_of
from streams.codec import encode
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.events import Event
from streams.topics import MEMORY
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import NOON
from tests.valence_kb.conftest import Agent


def merging(*sources: str, key: str = "m1", content: str = "Tides turn. | The tide turns.", **more: Any) -> Event:
    group = {"memory_id": merged_id_of("default", sources), "content": content, "merged_from": list(sources), **more}
    return Event(key, "producer", MEMORIES_MERGED, "default", NOON, {"groups": [group], "strategy": "similarity"})


async def publish(node: EmbeddingNode, *events: Event) -> None:
    await node.publish([encode(MEMORY.name, event) for event in events])


async def stored(agent: Agent, *contents: str, **more: Any) -> list[str]:
    return [(await agent.call("store_memory", content=content, **more))["fingerprintId"] for content in contents]


async def found(agent: Agent, query: str) -> list[str]:
    return [row["fingerprintId"] for row in (await agent.call("search_graph", query=query))["results"]]


async def test_a_merged_memory_stands_for_its_sources_which_stay(agent: Agent, node: EmbeddingNode) -> None:
    first = await agent.call("store_memory", content="Tides turn.", importance=0.9, tags=["sea"])
    node.clock.time += timedelta(hours=1)
    second = await agent.call("store_memory", content="The tide turns.", importance=0.4, tags=["sea", "moon"])
    a, b = first["fingerprintId"], second["fingerprintId"]
    assert set(await found(agent, "tides")) == {a, b}
    await publish(node, merging(a, b))
    merged = merged_id_of("default", [b, a])
    assert await found(agent, "tides") == [merged]
    [row] = node.store.sql("SELECT content, importance, tags, merged_from FROM context_memories WHERE times = 0")
    assert row == ("Tides turn. | The tide turns.", 0.9, ["sea", "moon"], [a, b])
    assert node.store.sql("SELECT memory_id, merged_into, how FROM context_ends ORDER BY ALL") == sorted(
        (one, merged, "similarity") for one in (a, b)
    )
    live = node.store.sql("SELECT memory_id, is_live, superseded_by FROM memories ORDER BY is_live DESC, memory_id")
    assert live == [(merged, True, None), *sorted((one, False, merged) for one in (a, b))]
    states = node.store.sql("SELECT times, access_count, status FROM context_memory_states ORDER BY status, memory_id")
    assert states == [(2, 1, "active"), (1, 0, "merged"), (1, 0, "merged")]


async def test_a_merge_of_merges_leads_to_the_last(agent: Agent, node: EmbeddingNode) -> None:
    a, b, c = await stored(agent, "Tides turn.", "The tide turns.", "The tides turn.")
    await publish(node, merging(a, b))
    m = merged_id_of("default", [a, b])
    await publish(node, merging(m, c, key="m2", content="Tides turn. | The tide turns. | The tides turn."))
    last = merged_id_of("default", [m, c])
    assert await found(agent, "tide") == [last]
    cursor = node.store.database.cursor()
    assert followed(cursor, "default", a) == followed(cursor, "default", m) == followed(cursor, "default", last) == last
    assert followed_all(cursor, "default", [a, c, last, "nobody"]) == {a: last, c: last}
    assert followed(cursor, "other", a) == a
    [(access,)] = node.store.sql("SELECT access_count FROM context_memory_states WHERE status = 'active'")
    assert access == 2


async def test_of_two_merges_of_one_memory_the_first_in_the_log_wins(agent: Agent, node: EmbeddingNode) -> None:
    a, b, c = await stored(agent, "Tides turn.", "The tide turns.", "The tides turn.")
    await publish(node, merging(a, b), merging(b, c, key="m2"), merging(a, b, key="m3"))
    assert len(node.store.sql("FROM context_ends")) == 2
    assert set(await found(agent, "tide")) == {merged_id_of("default", [a, b]), c}
    told = node.store.sql("SELECT result->>'groups', result->>'refused' FROM outcomes ORDER BY ALL")
    assert told[-1] == ("1", "0") or ("0", "1") in told


@pytest.mark.parametrize(
    "sources", [("nobody", "else"), ("{a}", "nobody"), ("{a}", "{a}")], ids=["unknown", "one unknown", "one twice"]
)
async def test_what_cannot_be_merged_stays(agent: Agent, node: EmbeddingNode, sources: tuple[str, ...]) -> None:
    [a] = await stored(agent, "Tides turn.")
    await publish(node, merging(*(source.format(a=a) for source in sources)))
    assert node.store.sql("FROM context_ends") == [] and await found(agent, "tide") == [a]


async def test_content_of_a_source_stored_again_counts_for_what_stands_for_it(
    agent: Agent, node: EmbeddingNode
) -> None:
    a, b = await stored(agent, "Tides turn.", "The tide turns.")
    await publish(node, merging(a, b))
    again = await agent.call("store_memory", content="Tides turn.", tags=["again"], importance=1)
    merged = merged_id_of("default", [a, b])
    assert (again["fingerprintId"], again["deduplicated"]) == (merged, True)
    assert node.store.sql("SELECT times, tags, importance FROM context_memories WHERE memory_id = ?", merged) == [
        (1, ["again"], 1.0)
    ]
    assert node.store.sql("SELECT times FROM context_memory_states WHERE status = 'active'") == [(3,)]


async def test_every_tool_that_takes_the_id_of_a_source_follows_it(agent: Agent, node: EmbeddingNode) -> None:
    a, b, c = await stored(agent, "Tides turn.", "The tide turns.", "Snow fell on the pier.")
    vector = (await agent.call("fuse_embeddings", memory_id=a))["vector_id"]
    await publish(node, merging(a, b))
    merged = merged_id_of("default", [a, b])
    fused = await agent.call("fuse_embeddings", memory_id=a)
    assert (fused["memory_id"], fused["followed_from"]) == (merged, {"memory_id": a})
    for query in (a, vector):
        found = await agent.call("search_teleological", query_vector_id=query, min_similarity=0)
        assert found["followed_from"] == {"query_vector_id": a}
        assert {row["id"] for row in found["results"]} == {merged, c}
    judged = await agent.call("update_synergy_matrix", query_vector_id=c, result_vector_id=b, feedback="relevant")
    assert judged["followed_from"] == {"result_vector_id": b} and judged["version"] == 1
    plain = await agent.call("fuse_embeddings", memory_id=merged, store_result=False)
    assert "followed_from" not in plain


async def test_a_source_says_where_it_went(agent: Agent, node: EmbeddingNode) -> None:
    a, b = await stored(agent, "Tides turn.", "The tide turns.")
    await publish(node, merging(a, b))
    merged = merged_id_of("default", [a, b])
    cursor = node.store.database.cursor()
    source, successor = (find_text(cursor, "default", one, "content") for one in (a, merged))
    assert source is not None and (source["content"], source["merged_into"]) == ("Tides turn.", merged)
    assert successor is not None and "merged_into" not in successor


async def test_status_counts_what_lives_and_the_last_memory_is_one_that_was_stored(
    agent: Agent, node: EmbeddingNode
) -> None:
    a, b, _ = await stored(agent, "Tides turn.", "The tide turns.", "Snow fell on the pier.")
    await publish(node, merging(a, b))
    status = await agent.call("get_memetic_status")
    assert status["fingerprintCount"] == 2
    assert status["advisory"]["call"]["arguments"]["query"] == "Snow fell on the pier."


async def test_another_namespace_cannot_be_merged(agent: Agent, node: EmbeddingNode) -> None:
    a, b = await stored(agent, "Tides turn.", "The tide turns.")
    foreign = merging(a, b)
    await publish(node, Event("m9", "producer", MEMORIES_MERGED, "elsewhere", NOON, foreign.data))
    assert node.store.sql("FROM context_ends") == []


async def test_memories_of_one_event_are_no_excerpts_of_each_other(agent: Agent, node: EmbeddingNode) -> None:
    a, b, c, d = await stored(agent, "Tides turn", "tides turn.", "Tides turn at noon", "tides turn at noon.")
    groups = [
        {"memory_id": merged_id_of("default", pair), "content": content, "merged_from": list(pair)}
        for pair, content in (((a, b), "Tides turn"), ((c, d), "Tides turn at noon"))
    ]
    await publish(node, Event("two", "producer", MEMORIES_MERGED, "default", NOON, {"groups": groups}))
    assert set(await found(agent, "tides turn")) == {group["memory_id"] for group in groups}
