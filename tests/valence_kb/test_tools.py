"""The conversation tools as a client meets them.

The reference's shapes, the accept sentences, the traps pinned as absent.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from mcp_ingress.toolsets.valence.common import checked_limit
from mcp_ingress.toolsets.valence.kb_answers import MAX_EXCHANGES
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent

NOBODY = "00000000-0000-4000-8000-000000000000"


async def refused(agent: Agent, code: str, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await agent.call(tool, **arguments)
    assert (answer["success"], answer["error_code"]) == (False, code), answer
    return answer


# --- sessions


async def test_a_session_that_was_started_exists_with_all_that_was_said_of_it(agent: Agent) -> None:
    started = await agent.call(
        "session_start",
        platform="matrix",
        project_context="thalweg",
        external_room_id="!room:example.com",
        metadata={"claude_session_id": "c1", "n": 1},
    )
    assert UUID(started["session_id"]).version == 5 and started["freshness"]
    got = await agent.call("session_get", session_id=started["session_id"])
    assert got["session"] == started["session"]
    assert got["session"] | {"id": "", "started_at": "", "created_at": ""} == {
        "id": "",
        "platform": "matrix",
        "project_context": "thalweg",
        "status": "active",
        "summary": None,
        "themes": [],
        "started_at": "",
        "ended_at": None,
        "claude_session_id": "c1",
        "external_room_id": "!room:example.com",
        "metadata": {"claude_session_id": "c1", "n": 1},
        "created_at": "",
        "exchange_count": 0,
        "insight_count": 0,
        "source": "valence",
    }
    assert "exchanges" not in got


async def test_an_end_is_in_session_get(agent: Agent) -> None:
    session_id = await agent.session()
    ended = await agent.call("session_end", session_id=session_id, summary="Done", themes=["a", "b"])
    assert ended["already_ended"] is False
    got = (await agent.call("session_get", session_id=session_id))["session"]
    assert ended["session"] == got
    assert (got["status"], got["summary"], got["themes"]) == ("completed", "Done", ["a", "b"]) and got["ended_at"]


async def test_of_two_ends_the_first_keeps_its_time_and_the_second_is_told_so(agent: Agent) -> None:
    session_id = await agent.session()
    first = await agent.call("session_end", session_id=session_id, summary="One", themes=["a"])
    agent.node.clock.time += timedelta(hours=1)
    again = await agent.call("session_end", session_id=session_id, summary="Two", status="abandoned")
    assert again["already_ended"] is True
    expected = first["session"] | {"summary": "Two", "status": "abandoned"}
    assert again["session"] == expected
    third = await agent.call("session_end", session_id=session_id, themes=["b"])
    assert third["session"] == expected | {"themes": ["b"]}  # what is not named stays


async def test_sessions_are_listed_newest_first_and_counted_in_full(agent: Agent) -> None:
    ids = [await _later(agent, await agent.session(project_context="p" if number % 2 else "q")) for number in range(5)]
    await agent.call("session_end", session_id=ids[1])
    listed = await agent.call("session_list", limit=2)
    assert [session["id"] for session in listed["sessions"]] == [ids[4], ids[3]] and listed["total_count"] == 5
    assert (await agent.call("session_list", status="completed"))["total_count"] == 1
    assert [s["id"] for s in (await agent.call("session_list", project_context="p", status="active"))["sessions"]] == [
        ids[3]
    ]
    assert (await agent.call("session_list", platform="irc"))["sessions"] == []


async def _later(agent: Agent, value: Any) -> Any:
    agent.node.clock.time += timedelta(minutes=1)
    return value


async def test_a_rooms_newest_session_is_found_in_whatever_status(agent: Agent) -> None:
    room = {"platform": "matrix", "external_room_id": "!room:example.com"}
    older = await _later(agent, await agent.session(**room))
    newer = await agent.session(**room)
    await agent.call("session_end", session_id=older)
    found = await agent.call("session_find_by_room", external_room_id=room["external_room_id"])
    assert found["found"] is True
    session = found["session"]
    assert {name: session[name] for name in ("id", "platform", "external_room_id", "status")} == {
        "id": newer,
        "status": "active",
        **room,
    }
    assert session["created_at"].endswith("Z")
    completed = await agent.call("session_find_by_room", external_room_id="!room:example.com", status="completed")
    assert completed["session"]["id"] == older


async def test_a_room_of_nobody_is_a_success_with_nothing_found(agent: Agent) -> None:
    assert await agent.call("session_find_by_room", external_room_id="!other") == {
        "success": True,
        "found": False,
        "session": None,
    }


# --- exchanges


async def test_an_exchange_is_answered_in_full_and_is_listed_like_that(agent: Agent) -> None:
    session_id = await agent.session()
    uses = [{"name": "Bash", "input": {"command": "ls"}}]
    added = await agent.say(session_id, "Hello you", role="assistant", tool_uses=uses)
    assert added["sequence"] == 1 and added["exchange_id"] == added["exchange"]["id"]
    exchange = added["exchange"]
    assert (exchange["role"], exchange["content"], exchange["tokens_approx"], exchange["tool_uses"]) == (
        "assistant",
        "Hello you",
        3,
        uses,
    )
    assert (await agent.call("exchange_list", session_id=session_id))["exchanges"] == [exchange]


async def test_of_twelve_exchanges_the_default_are_the_last_ten_in_their_order(agent: Agent) -> None:
    session_id = await agent.session()
    for number in range(12):
        await agent.say(session_id, f"turn {number}")
    got = await agent.call("session_get", session_id=session_id, include_exchanges=True)
    assert [exchange["sequence"] for exchange in got["exchanges"]] == list(range(3, 13))
    assert got["session"]["exchange_count"] == 12


async def test_an_offset_alone_skips_and_the_count_is_of_all(agent: Agent) -> None:
    session_id = await agent.session()
    for number in range(5):
        await agent.say(session_id, f"turn {number}")
    skipped = await agent.call("exchange_list", session_id=session_id, offset=2)
    assert [exchange["sequence"] for exchange in skipped["exchanges"]] == [3, 4, 5] and skipped["total_count"] == 5
    one = await agent.call("exchange_list", session_id=session_id, limit=1)
    assert [exchange["sequence"] for exchange in one["exchanges"]] == [1] and one["total_count"] == 5
    past = await agent.call("exchange_list", session_id=session_id, offset=9)
    assert (past["exchanges"], past["total_count"]) == ([], 5)
    empty = await agent.call("exchange_list", session_id=await agent.session())
    assert (empty["exchanges"], empty["total_count"]) == ([], 0)


async def test_an_exchange_is_allowed_on_an_ended_session(agent: Agent) -> None:
    session_id = await agent.session()
    await agent.call("session_end", session_id=session_id)
    assert (await agent.say(session_id, "One more thing"))["sequence"] == 1


async def test_exchanges_and_patterns_can_be_searched(agent: Agent) -> None:
    session_id = await agent.session()
    added = await agent.say(session_id, "The deployment uses blue green")
    await agent.call("pattern_record", type="preference", description="Prefers small commits")
    rows = agent.node.store.sql("SELECT record_id, toolset, kind, session_id, text FROM documents ORDER BY kind")
    assert rows[0] == (added["exchange_id"], "valence", "Exchange", session_id, "The deployment uses blue green")
    assert rows[1][1:] == ("valence", "Pattern", None, "Prefers small commits")


# --- patterns


async def test_a_recorded_pattern_is_emerging_with_one_occurrence_whatever_its_evidence(agent: Agent) -> None:
    known = await agent.session()
    recorded = await agent.call("pattern_record", type="preference", description="Tea", evidence=[known, "gone", known])
    assert recorded["pattern"] | {"id": "", "first_observed": "", "last_observed": ""} == {
        "id": "",
        "type": "preference",
        "description": "Tea",
        "evidence": [known, "gone"],
        "occurrence_count": 1,
        "confidence": 0.5,
        "status": "emerging",
        "first_observed": "",
        "last_observed": "",
    }
    assert len(recorded["warnings"]) == 1 and "gone" in recorded["warnings"][0]
    assert (await agent.call("pattern_list"))["patterns"] == [recorded["pattern"]]


async def test_four_calls_with_new_sessions_establish_a_pattern(agent: Agent) -> None:
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    for _ in range(4):
        answer = await agent.call("pattern_reinforce", pattern_id=pattern_id, session_id=await agent.session())
        assert answer["already_counted"] is False
    assert answer["pattern"]["status"] == "established" and answer["pattern"]["confidence"] == pytest.approx(0.67195)
    again = await agent.call("pattern_reinforce", pattern_id=pattern_id, session_id=answer["pattern"]["evidence"][0])
    assert again["already_counted"] is True and again["pattern"] == answer["pattern"]


async def test_a_pattern_fades_on_read_is_archived_and_comes_back_when_it_is_met_again(
    agent: Agent, node: SmallNode
) -> None:
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    node.clock.time += timedelta(days=14)
    [listed] = (await agent.call("pattern_list", status="fading"))["patterns"]
    assert listed["status"] == "fading"
    assert (await agent.call("pattern_list", status="emerging"))["total_count"] == 0
    node.clock.time += timedelta(days=166)
    assert (await agent.call("pattern_list"))["patterns"] == []
    assert (await agent.call("pattern_reinforce", pattern_id=pattern_id))["pattern"]["status"] == "emerging"
    assert (await agent.call("pattern_list"))["total_count"] == 1


async def test_patterns_are_listed_by_occurrence_then_confidence_and_filtered(agent: Agent) -> None:
    ids = {}
    for name, confidence in (("low", 0.2), ("high", 0.9), ("often", 0.3)):
        ids[name] = (await agent.call("pattern_record", type=name, description=name, confidence=confidence))[
            "pattern_id"
        ]
    await agent.call("pattern_reinforce", pattern_id=ids["often"])
    listed = await agent.call("pattern_list", limit=2)
    assert [pattern["type"] for pattern in listed["patterns"]] == ["often", "high"] and listed["total_count"] == 3
    assert (await agent.call("pattern_list", min_confidence=0.9))["patterns"][0]["type"] == "high"
    assert (await agent.call("pattern_list", type="low"))["total_count"] == 1


# --- refusals


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("session_start", {"platform": "irc"}),
        ("session_end", {"session_id": "x"}),
        ("session_end", {"session_id": NOBODY, "status": "active"}),
        ("session_get", {"session_id": f"{NOBODY}/"}),
        ("session_get", {"session_id": NOBODY, "exchange_limit": 0}),
        ("session_list", {"limit": 0}),
        ("session_find_by_room", {"external_room_id": " "}),
        ("session_find_by_room", {"external_room_id": "r", "status": "open"}),
        ("exchange_add", {"session_id": NOBODY, "role": "user", "content": " "}),
        ("exchange_add", {"session_id": NOBODY, "role": "tool", "content": "x"}),
        ("exchange_list", {"session_id": NOBODY, "offset": -1}),
        ("exchange_list", {"session_id": NOBODY, "limit": 0}),
        ("pattern_record", {"type": "t", "description": ""}),
        ("pattern_record", {"type": "t", "description": "d", "confidence": 1.2}),
        ("pattern_reinforce", {"pattern_id": "x"}),
        ("pattern_reinforce", {"pattern_id": NOBODY, "session_id": "x"}),
        ("pattern_list", {"status": "archived"}),
    ],
)
async def test_a_value_that_cannot_be_is_refused_by_name(asked: Agent, tool: str, arguments: dict[str, Any]) -> None:
    await refused(asked, "INVALID_PARAMS", tool, **arguments)
    assert asked.node.published == []


async def test_a_refusal_says_code_and_sentence_under_the_names_of_the_reference(agent: Agent) -> None:
    for arguments, parameter in (({}, "platform"), ({"platform": 1}, "platform"), ({"platform": "irc"}, "platform")):
        answer = await refused(agent, "INVALID_PARAMS", "session_start", **arguments)
        assert [*answer.values()].count(answer["error_message"]) == 1 and "`platform`" in answer["error_message"]
        assert answer["details"]["parameter"] == parameter
    undeclared = await refused(agent, "INVALID_PARAMS", "session_start", platform="api", room="x")
    assert "external_room_id" in undeclared["error_message"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("session_end", {"session_id": NOBODY}, "SESSION_NOT_FOUND"),
        ("session_get", {"session_id": NOBODY}, "SESSION_NOT_FOUND"),
        ("exchange_add", {"session_id": NOBODY, "role": "user", "content": "x"}, "SESSION_NOT_FOUND"),
        ("exchange_list", {"session_id": NOBODY}, "SESSION_NOT_FOUND"),
        ("pattern_reinforce", {"pattern_id": NOBODY}, "PATTERN_NOT_FOUND"),
    ],
)
async def test_what_does_not_exist_is_told_by_its_own_code(
    agent: Agent, tool: str, arguments: dict[str, Any], code: str
) -> None:
    await refused(agent, code, tool, **arguments)


async def test_reinforcing_with_an_unknown_session_is_refused(agent: Agent) -> None:
    pattern_id = (await agent.call("pattern_record", type="t", description="d"))["pattern_id"]
    await refused(agent, "SESSION_NOT_FOUND", "pattern_reinforce", pattern_id=pattern_id, session_id=str(uuid4()))


async def test_limits_beyond_the_greatest_are_lowered(agent: Agent) -> None:
    assert (checked_limit({"limit": 10**6}), checked_limit({"limit": 10**6}, most=MAX_EXCHANGES)) == (100, 1000)
    assert (await agent.call("session_list", limit=10**6))["success"]
    session_id = await agent.session()
    assert (await agent.call("exchange_list", session_id=session_id, limit=10**6))["success"]


# --- while parts are behind or down


async def test_a_write_that_is_not_applied_in_time_answers_pending_with_what_was_submitted(
    agent: Agent, node: SmallNode
) -> None:
    session_id = await agent.session()
    node.is_behind = True
    added = await agent.say(session_id, "later")
    assert added["pending"] is True and added["sequence"] is None and added["exchange"]["content"] == "later"
    ended = await agent.call("session_end", session_id=session_id)
    assert ended["pending"] is True and ended["session"] is None and ended["freshness"]
    assert (await agent.call("session_get", session_id=session_id))["stale"] is True


async def test_a_log_that_is_down_keeps_the_write_and_says_so(agent: Agent, node: SmallNode) -> None:
    session_id = await agent.session()
    node.is_down = True
    added = await agent.say(session_id, "kept")
    assert (added["success"], added["degraded"], added["spooled"]) == (False, True, True) and added["exchange_id"]


async def test_a_store_that_is_down_is_said_by_a_read(agent: Agent, node: SmallNode) -> None:
    node.reader.is_down = True
    answer = await refused(agent, "STORAGE_ERROR", "session_list")
    assert answer["degraded"] is True


async def test_a_defect_is_told_by_its_code_and_shows_nothing_of_the_inside(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(query: object) -> None:
        raise ZeroDivisionError("division by zero")

    monkeypatch.setattr(agent.node.reader, "run", fail)
    answer = await refused(agent, "INTERNAL_ERROR", "pattern_list")
    assert "division" not in str(answer)
