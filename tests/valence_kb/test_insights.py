"""insight_extract: a belief of its session; who stated it first, and how it is traced back and forward."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from streams.codec import encode
from streams.topics import INVOCATIONS
from tests.processors.harness import event
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent
from tests.valence_kb.test_tools import NOBODY, refused
from tests.valence_kb.test_transcripts import TRANSCRIPT, import_example

FACT = "The gateway uses Redis for its cache"


async def test_an_insight_is_a_belief_whose_source_is_the_session(agent: Agent) -> None:
    session_id = await agent.session()
    answer = await agent.call(
        "insight_extract",
        session_id=session_id,
        content=FACT,
        domain_path=["tech", "cache"],
        confidence=0.8,
        entities=["Redis"],
    )
    belief = answer["belief"]
    assert (answer["session_id"], answer["action"], answer["deduplicated"]) == (session_id, "created", False)
    assert answer["belief_id"] == belief["id"] and answer["tensions_detected"] == []
    assert (belief["content"], belief["confidence"]["overall"], belief["domain_path"]) == (FACT, 0.8, ["tech", "cache"])
    assert belief["extraction_method"] == "conversation_extraction"
    source = belief["source"]
    assert (source["type"], source["title"], source["session_id"]) == (
        "conversation",
        f"Session: {session_id}",
        session_id,
    )
    assert [link["entity"]["name"] for link in belief["entities"]] == ["Redis"]
    assert (await agent.call("session_get", session_id=session_id))["session"]["insight_count"] == 1
    rows = agent.node.store.sql("SELECT insight_id, session_id, belief_id, extraction_method FROM vkb_session_insights")
    assert rows == [(answer["insight_id"], session_id, belief["id"], "manual")]


async def test_the_source_of_a_session_is_there_before_any_insight(agent: Agent) -> None:
    session_id = await agent.session()
    assert agent.node.store.sql("SELECT type, title, session_id FROM valence_sources") == [
        ("conversation", f"Session: {session_id}", session_id)
    ]


async def test_without_a_confidence_it_is_eight_tenths_and_an_object_is_accepted_too(agent: Agent) -> None:
    session_id = await agent.session()
    plain = await agent.call("insight_extract", session_id=session_id, content="One thing")
    assert plain["belief"]["confidence"] == {"overall": 0.8}
    given = {"source_reliability": 0.9, "method_quality": 0.5}
    shaped = await agent.call("insight_extract", session_id=session_id, content="Another thing", confidence=given)
    assert shaped["belief"]["confidence"]["overall"] == pytest.approx(0.7220, abs=1e-4)


async def test_an_insight_can_be_found_by_its_words_beside_its_belief(agent: Agent) -> None:
    session_id = await agent.session()
    answer = await agent.call("insight_extract", session_id=session_id, content=FACT)
    rows = agent.node.store.sql("SELECT kind, record_id, text FROM documents ORDER BY kind")
    assert rows == [("Belief", answer["belief_id"], FACT), ("Insight", answer["insight_id"], FACT)]
    assert (await agent.call("belief_query", query="what does the gateway cache with"))["beliefs"][0]["id"] == answer[
        "belief_id"
    ]


async def test_the_same_insight_again_in_one_session_changes_nothing_and_names_the_one_that_stands(
    agent: Agent,
) -> None:
    session_id = await agent.session()
    calls = (agent.call("insight_extract", session_id=session_id, content=FACT) for _ in range(5))
    answers = await asyncio.gather(*calls)
    assert sorted(answer["action"] for answer in answers) == ["created"] + ["unchanged"] * 4
    assert len({(answer["insight_id"], answer["belief_id"]) for answer in answers}) == 1
    assert (await agent.call("session_get", session_id=session_id))["session"]["insight_count"] == 1


async def test_the_same_insight_of_another_session_reinforces_the_belief_of_the_first(agent: Agent) -> None:
    sessions = [await agent.session() for _ in range(3)]
    answers = await asyncio.gather(
        *(agent.call("insight_extract", session_id=s, content=FACT, confidence=0.5) for s in sessions)
    )
    assert sorted(answer["action"] for answer in answers) == ["created", "reinforced", "reinforced"]
    assert sorted(answer["corroboration_count"] for answer in answers) == [1, 2, 3]
    assert (
        len({answer["belief_id"] for answer in answers}) == 1 and len({answer["insight_id"] for answer in answers}) == 3
    )
    held = await agent.call("belief_get", belief_id=answers[0]["belief_id"])
    assert held["belief"]["confidence"]["overall"] == pytest.approx(0.8)


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": " "},
        {"content": "x", "confidence": 1.2},
        {"content": "x", "confidence": {"certainty": 1}},
        {"content": "x", "entities": [{"type": "tool"}]},
        {"content": "x", "entities": [{"name": "a", "type": "gadget"}]},
        {"content": "x", "session_id": "x"},
    ],
)
async def test_what_no_belief_can_be_made_of_is_refused_by_name(asked: Agent, arguments: dict[str, Any]) -> None:
    answer = await refused(asked, "INVALID_PARAMS", "insight_extract", **{"session_id": NOBODY, **arguments})
    assert answer["details"]["parameter"] in arguments and asked.node.published == []


async def test_an_insight_of_nobody_or_of_a_transcript_is_refused_and_leaves_no_belief(
    agent: Agent, node: SmallNode
) -> None:
    await import_example(node)
    for session_id in (NOBODY, TRANSCRIPT):
        await refused(agent, "SESSION_NOT_FOUND", "insight_extract", session_id=session_id, content=FACT)
    assert node.store.sql("SELECT count(*) FROM valence_beliefs") == [(0,)]


async def test_what_a_foreign_producer_tells_is_judged_by_the_same_rules(agent: Agent, node: SmallNode) -> None:
    session_id = await agent.session()
    bad: dict[str, Any] = {"entities": [5], "confidence": {"overall": "high"}, "similar": []}
    events = [
        event("valence.insight.extracted", {"session_id": session_id, "content": FACT, **more}, id=f"x{number}")
        for number, more in enumerate(({}, *({name: value} for name, value in bad.items()), {"session_id": "gone"}))
    ]
    reduced = node.store.publish(*events)
    assert reduced.buried == []
    codes = node.store.sql("SELECT code FROM outcomes WHERE request_id LIKE 'x%' ORDER BY request_id")
    assert codes == [(None,), ("INVALID_PARAMS",), ("INVALID_PARAMS",), (None,), ("SESSION_NOT_FOUND",)]


async def test_an_insight_that_is_not_applied_in_time_is_pending_with_the_ids_that_it_will_have(
    agent: Agent, node: SmallNode
) -> None:
    session_id = await agent.session()
    node.is_behind = True
    answer = await agent.call("insight_extract", session_id=session_id, content=FACT, request_id="r1")
    assert answer["pending"] is True and answer["action"] is None and answer["belief"]["content"] == FACT
    node.process([node.store.record(encode("thalweg.memory.v1", node.published[-1]))])
    [row] = node.store.sql("SELECT insight_id, belief_id FROM vkb_session_insights")
    assert row == (answer["insight_id"], answer["belief_id"])


async def test_a_used_request_id_is_told(agent: Agent) -> None:
    session_id = await agent.session()
    first = await agent.call("insight_extract", session_id=session_id, content=FACT, request_id="r1")
    again = await agent.call("insight_extract", session_id=session_id, content=FACT, request_id="r1")
    assert (again["insight_id"], again["action"]) == (first["insight_id"], "created")
    other = await refused_with_id(agent, session_id)
    assert other["details"]["allowed"]["belief_id"] == first["belief_id"]


async def refused_with_id(agent: Agent, session_id: str) -> dict[str, Any]:
    answer = await agent.call("insight_extract", session_id=session_id, content="Something else", request_id="r1")
    assert answer["error_code"] == "INVALID_PARAMS"
    return answer


async def test_a_belief_is_traced_to_exchange_call_and_record_and_forward_to_what_it_became(
    agent: Agent, node: SmallNode
) -> None:
    await import_example(node)
    [(tool_use, line)] = node.store.sql("SELECT tool_call_id, event_id FROM tool_calls ORDER BY started_at LIMIT 1")
    session_id = await agent.session(metadata={"claude_session_id": TRANSCRIPT})
    await agent.say(session_id, "We cache in Redis")
    latest = await agent.say(session_id, "Noted", role="assistant")
    insight = await agent.call("insight_extract", session_id=session_id, content=FACT, request_id=tool_use)
    await agent.say(session_id, "And later")
    call = {"tool": "insight_extract", "outcome": "ok", "request_id": tool_use}
    node.store.apply(
        node.store.record(encode(INVOCATIONS.name, event("tool.invoked", call, id="call-1", time=node.clock.time)))
    )
    node.clock.time += timedelta(days=1)
    newer = await agent.call(
        "belief_supersede", old_belief_id=insight["belief_id"], new_content="It uses Valkey", reason="moved"
    )
    newest = await agent.call(
        "belief_supersede", old_belief_id=newer["new_belief"]["id"], new_content="It uses Dragonfly", reason="again"
    )
    columns = (
        "session_id, insight_id, exchange_id, exchange_sequence, request_id, invocation_id, tool_name, "
        "tool_call_id, transcript_event_id, "
        'topic, "offset", status, current_belief_id, current_content, supersessions'
    )
    [row] = node.store.sql(f"SELECT {columns} FROM belief_origins WHERE belief_id = ?", insight["belief_id"])
    [(offset,)] = node.store.sql(
        "SELECT \"offset\" FROM events WHERE event_type = 'thalweg.valence.insight.extracted.v1'"
    )
    assert row[:4] == (session_id, insight["insight_id"], latest["exchange_id"], 2)
    assert row[4:9] == (tool_use, "call-1", "insight_extract", tool_use, line)
    assert row[9:12] == ("thalweg.memory.v1", offset, "superseded")
    assert row[12:] == (newest["new_belief"]["id"], "It uses Dragonfly", 2)
    assert node.store.sql("SELECT count(*), count(DISTINCT belief_id) FROM belief_origins") == [(3, 3)]


async def test_a_belief_created_with_a_session_as_source_has_its_exchange_too(agent: Agent, node: SmallNode) -> None:
    session_id = await agent.session()
    latest = await agent.say(session_id, "We cache in Redis")
    made = await agent.call("belief_create", content=FACT, source_ref=session_id)
    await agent.say(session_id, "And later")
    [row] = node.store.sql(
        "SELECT session_id, exchange_id FROM belief_origins WHERE belief_id = ?", made["belief"]["id"]
    )
    assert row == (session_id, latest["exchange_id"])


async def test_all_that_is_remembered_is_in_the_one_view(agent: Agent, node: SmallNode) -> None:
    session_id = await agent.session()
    await agent.say(session_id, "Hello")
    await agent.call("pattern_record", type="t", description="Greets")
    await agent.call("insight_extract", session_id=session_id, content=FACT)
    rows = node.store.sql("SELECT kind, session_id, text, is_live FROM memories ORDER BY kind")
    assert rows == [
        ("belief", session_id, FACT, True),
        ("exchange", session_id, "Hello", True),
        ("pattern", None, "Greets", True),
    ]
    assert node.store.sql("SELECT session_id, source FROM sessions") == [(session_id, "valence")]
