"""Conversations read from transcripts and those that a tool recorded are one.

The same tools and the same views show both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import pytest

from streams.log.base import Log, Outgoing
from streams.positions import Position
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent
from thalweg.example import session_path
from thalweg.importing.importer import import_files

TRANSCRIPT = "7d0c2f4e-5b1a-4c7e-9f36-2a8e41b7c905"


class IntoStore:
    """A log whose records, dead letters too, are rows at once."""

    def __init__(self, node: SmallNode) -> None:
        self._store = node.store

    largest, check = Log.largest, Log.check

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        placed = [self._store.record(record) for record in records]
        self._store.apply(*placed)
        return [record.position for record in placed]


async def import_example(node: SmallNode) -> None:
    await import_files(
        cast(Log, IntoStore(node)), "claude-code", [session_path()], namespace="default", clock=node.clock
    )


@pytest.fixture
async def imported(node: SmallNode) -> SmallNode:
    await import_example(node)
    return node


async def test_an_imported_conversation_is_read_like_a_recorded_one(agent: Agent, imported: SmallNode) -> None:
    session = (await agent.call("session_get", session_id=TRANSCRIPT))["session"]
    assert (session["platform"], session["status"], session["claude_session_id"]) == (
        "claude-code",
        "completed",
        TRANSCRIPT,
    )
    listed = await agent.call("exchange_list", session_id=TRANSCRIPT)
    assert [exchange["sequence"] for exchange in listed["exchanges"]] == list(range(1, session["exchange_count"] + 1))
    assert listed["total_count"] == session["exchange_count"]
    first = listed["exchanges"][0]
    assert first["role"] == "user" and first["content"].startswith("Gauges in Newfoundland")
    assert {exchange["role"] for exchange in listed["exchanges"]} == {"user", "assistant"}


async def test_a_turn_of_a_transcript_names_the_tool_calls_that_it_made(agent: Agent, imported: SmallNode) -> None:
    exchanges = (await agent.call("exchange_list", session_id=TRANSCRIPT))["exchanges"]
    used = {use["id"] for exchange in exchanges for use in exchange["tool_uses"]}
    rows = imported.store.sql("SELECT tool_call_id FROM tool_calls WHERE session_id = ?", TRANSCRIPT)
    assert used == {identity for (identity,) in rows} and used


async def test_both_kinds_and_sub_agents_are_in_one_list(agent: Agent, imported: SmallNode) -> None:
    own = await agent.session()
    listed = await agent.call("session_list")
    assert listed["total_count"] == 3 and own in {session["id"] for session in listed["sessions"]}
    [child] = [session for session in listed["sessions"] if "/" in session["id"]]
    assert child["metadata"]["parent_session_id"] == TRANSCRIPT
    assert (await agent.call("session_get", session_id=child["id"]))["session"] == child
    assert (await agent.call("session_list", platform="claude-code"))["total_count"] == 2


async def test_sessions_of_every_kind_are_in_one_list_each_with_its_source(
    agent: Agent, imported: SmallNode, node: SmallNode
) -> None:
    own = await agent.session()
    day = "2026-01-05-tide.gauge"
    await node.call("session_open", session_id=day, goal="Find the lost hour")
    listed = (await agent.call("session_list"))["sessions"]
    assert {session["id"]: session["source"] for session in listed} == {
        own: "valence",
        day: "talos",
        TRANSCRIPT: "claude-code",
        f"{TRANSCRIPT}/a41c9e7": "claude-code",
    }
    node.observe("session.tool_call", session__id="2026-01-05-never-opened", tool__name="journal_query")
    [found] = (await agent.call("session_list", platform="talos"))["sessions"]
    assert (found["status"], found["metadata"]["goal"]) == ("active", "Find the lost hour")
    assert (await agent.call("session_get", session_id=day, include_exchanges=True))["session"] == found
    assert (await agent.call("exchange_list", session_id=day))["exchanges"] == []
    await node.call("session_close", session_id=day, summary="It was the offset")
    closed = (await agent.call("session_get", session_id=day))["session"]
    assert (closed["status"], closed["summary"]) == ("completed", "It was the offset") and closed["ended_at"]


async def test_importing_again_and_recording_meanwhile_changes_no_number(
    agent: Agent, imported: SmallNode, node: SmallNode
) -> None:
    own = await agent.session(metadata={"claude_session_id": TRANSCRIPT})
    await agent.say(own, "one")
    before = node.store.sql("SELECT session_id, sequence, exchange_id FROM exchanges ORDER BY ALL")
    await import_example(node)
    assert node.store.sql("SELECT session_id, sequence, exchange_id FROM exchanges ORDER BY ALL") == before
    assert (await agent.say(own, "two"))["sequence"] == 2


async def test_what_a_transcript_tells_cannot_be_added_to(agent: Agent, imported: SmallNode) -> None:
    answer = await agent.say(TRANSCRIPT, "afterthought")
    assert answer["error_code"] == "SESSION_NOT_FOUND" and "transcript" in answer["error_message"]


async def test_a_belief_is_traced_to_an_imported_exchange_as_to_a_recorded_one(
    agent: Agent, imported: SmallNode, node: SmallNode
) -> None:
    """One row each: words, call, place on the log, and what it has become. The transcript's call is the request."""
    [(tool_use, line)] = node.store.sql("SELECT tool_call_id, event_id FROM tool_calls ORDER BY started_at LIMIT 1")
    own = await agent.session()
    said = await agent.say(own, "The gauge reads 4")
    recorded = await agent.call("insight_extract", session_id=own, content="The gauge reads 4")
    made = await agent.call("belief_create", content="Gauges in Newfoundland are read at dawn", request_id=tool_use)
    later = await agent.call(
        "belief_supersede", old_belief_id=made["belief"]["id"], new_content="They are read at noon", reason="asked"
    )
    rows = node.store.sql(
        "SELECT o.belief_id, o.session_id, o.exchange_id, x.origin, o.exchange_content = x.content, "
        "o.exchange_sequence = x.sequence, "
        'o.tool_call_id, c.tool_name, o.topic, r."offset" = o."offset", o.current_belief_id FROM belief_origins o '
        "JOIN exchanges x ON x.exchange_id = o.exchange_id LEFT JOIN tool_calls c ON c.tool_call_id = o.tool_call_id "
        "JOIN outcomes r ON r.request_id = o.request_id ORDER BY x.origin"
    )
    [(used,)] = node.store.sql("SELECT tool_name FROM tool_calls WHERE tool_call_id = ?", tool_use)
    memory, newest = "thalweg.memory.v1", later["new_belief"]["id"]
    by_tool = (
        recorded["belief_id"],
        own,
        said["exchange_id"],
        "tool",
        True,
        True,
        None,
        None,
        memory,
        True,
        recorded["belief_id"],
    )
    by_transcript = (
        made["belief"]["id"],
        TRANSCRIPT,
        line,
        "transcript",
        True,
        True,
        tool_use,
        used,
        memory,
        True,
        newest,
    )
    assert rows == [by_tool, by_transcript]
