"""A search that leaves out all that it found raises noradrenaline: the same query then asks for less."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import orjson
import pytest

from mcp_ingress.door import Request, Visitor
from mcp_ingress.scope import Scope
from processors.context_graph.rules.attention import Pool, order
from processors.context_graph.rules.modulators import MISSED_EVERY_S, MISSED_NORADRENALINE, Levels
from streams.event_types.context_state import MEMORY_MISSED
from tests.context_graph.test_attention import SCORES, SESSIONS
from tests.context_graph.test_inject_context import SEA, said
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import make_event
from tests.valence_kb.conftest import Agent

QUERY, LEAST = " ".join(SEA), 0.9
"""Of its words no memory has more than half: none is as similar as LEAST, and some are two thirds as much."""
HISTORY = "SELECT e.event_type, o.result FROM outcomes o JOIN events e USING (namespace, event_id) WHERE event_type = ?"


@pytest.fixture
async def found(agent: Agent) -> Agent:
    for number in range(12):
        await agent.call("store_memory", content=said(SEA, number))
    agent.door.start()
    return agent


def misses(node: EmbeddingNode) -> list[Any]:
    return [event for event in node.published if event.type == MEMORY_MISSED]


async def level(agent: Agent) -> float:
    return float((await agent.call("get_neuromodulation_state"))["noradrenaline"]["level"])


async def search(agent: Agent, tool: str = "search_graph", **more: Any) -> list[str]:
    named = {"query": QUERY, "minSimilarity": LEAST} if tool == "search_graph" else {"query_content": QUERY}
    answer = await agent.call(tool, **{**named, **more})
    return [row.get("fingerprintId") or row["id"] for row in answer["results"]]


async def test_after_an_empty_search_the_same_query_returns_more_until_the_level_is_back(
    found: Agent, node: EmbeddingNode
) -> None:
    every = await search(found, minSimilarity=0)
    assert (await search(found), await level(found)) == ([], 1.0 + MISSED_NORADRENALINE)
    more = await search(found)
    assert 0 < len(more) < len(every)
    assert more == [each for each in every if each in more], "the order is that of the baseline"
    node.clock.time += timedelta(seconds=5)
    assert await level(found) == pytest.approx(1.0 + MISSED_NORADRENALINE * 0.9**5)
    node.clock.time += timedelta(seconds=600)
    assert (await search(found), len(misses(node))) == ([], 2)
    await found.door.stop()


async def test_comparing_in_thirteen_views_raises_it_and_follows_it(found: Agent, node: EmbeddingNode) -> None:
    asked = {"tool": "search_teleological", "strategy": "cosine"}
    answer = await found.call("search_teleological", query_content=QUERY, strategy="cosine", min_similarity=0)
    least = answer["results"][0]["similarity"] + 0.02
    assert (await search(found, **asked, min_similarity=least), await level(found)) == ([], 1.5)
    assert await search(found, **asked, min_similarity=least)
    assert [event.data["tool"] for event in misses(node)] == ["search_teleological"]
    await found.door.stop()


async def test_of_a_loop_of_empty_searches_one_in_some_seconds_counts(found: Agent, node: EmbeddingNode) -> None:
    for _ in range(20):
        assert await search(found, query="tide and invoices", minSimilarity=1) == []
    assert len(misses(node)) == 1
    node.clock.time += timedelta(seconds=MISSED_EVERY_S)
    await search(found, query="tide and invoices", minSimilarity=1)
    assert len(misses(node)) == 2
    node.clock.time -= timedelta(seconds=600)
    await search(found, query="tide and invoices", minSimilarity=1)
    assert len(misses(node)) == 3, "a clock that goes back stops nothing"
    await found.door.stop()


async def test_where_nothing_was_left_out_nothing_is_raised(agent: Agent, node: EmbeddingNode) -> None:
    agent.door.start()
    assert await search(agent) == []
    await agent.call("store_memory", content=said(SEA, 0))
    assert await search(agent, modality="code") == []
    assert (misses(node), await level(agent)) == ([], 1.0)
    await agent.door.stop()


async def test_a_caller_that_only_reads_raises_nothing(found: Agent, node: EmbeddingNode) -> None:
    reader = found.door.visit(Scope(read_only=True))
    arguments = {"query": QUERY, "minSimilarity": LEAST}
    body = (await found.door.call(reader, Request("search_graph", arguments))).body
    assert (body["success"], body["results"], body["count"]) == (True, [], 0)
    assert await level(found) == 1.0 and misses(node) == []
    writer = Visitor(found.door.local)
    await found.door.call(writer, Request("search_graph", arguments))
    assert len(misses(node)) == 1
    await found.door.stop()


async def test_a_log_that_does_not_answer_fails_no_search(found: Agent, node: EmbeddingNode) -> None:
    node.is_down = True
    assert await search(found) == []
    node.is_down = False
    assert await found.door.publisher.flushed(5)
    assert len(misses(node)) == 1
    await found.door.stop()


async def test_the_history_says_what_raised_it_and_the_same_event_again_nothing(
    found: Agent, node: EmbeddingNode
) -> None:
    await search(found)
    [(kind, result)] = node.store.sql(HISTORY, MEMORY_MISSED)
    told = orjson.loads(result)
    assert (told["modulator"], told["old_level"], told["new_level"]) == ("noradrenaline", 1.0, 1.5)
    [event] = misses(node)
    node.tell(event)
    assert (kind, await level(found)) == (MEMORY_MISSED, 1.5)
    about = {"time": node.clock.time, "namespace": "default"}
    node.tell(make_event("context.memory.missed", dict(event.data), event_id="other", **about))
    assert await level(found) == 2.0
    await found.door.stop()


def test_noradrenaline_alone_leaves_the_order_as_it_was_found() -> None:
    found = Pool(SCORES[::-1].copy(), None, SESSIONS)
    assert order(found, Levels(noradrenaline=2.0)).tolist() == list(range(len(SCORES)))
