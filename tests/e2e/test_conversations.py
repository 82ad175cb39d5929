"""The reference's examples of Valence's conversations, request by request.

The real MCP client, the real node, the real log.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from mcp import Client

from mcp_ingress.door import REQUEST_ID_META
from tests.e2e.program import Program
from tests.e2e.test_agent import answered, call, over_stdio, refused
from thalweg.example import session_path

pytestmark = pytest.mark.timeout(300)

ROOM = "!room:example.com"
TRANSCRIPT = "7d0c2f4e-5b1a-4c7e-9f36-2a8e41b7c905"


async def test_a_room_from_its_first_session_to_its_insight_and_what_the_reference_prints_of_it(
    thalweg: Program,
) -> None:
    async with over_stdio(thalweg) as client:
        started = await call(
            client, "session_start", platform="matrix", external_room_id=ROOM, project_context="deployment"
        )
        session_id = started["session_id"]
        found = await call(client, "session_find_by_room", external_room_id=ROOM)
        printed = {"id": session_id, "platform": "matrix", "external_room_id": ROOM, "status": "active"}
        assert found["success"] is True and printed.items() <= found["session"].items()
        assert found["session"]["created_at"] == started["session"]["created_at"]

        turns = await _fifty_at_once(client, session_id)
        assert sorted(turn["sequence"] for turn in turns) == list(range(1, 51))
        page = await call(client, "exchange_list", session_id=session_id, limit=1, offset=10)
        assert page["total_count"] == 50 and [exchange["sequence"] for exchange in page["exchanges"]] == [11]

        await _capture_on_insight(client, session_id)
        ended = await call(client, "session_end", session_id=session_id, summary="Blue green", themes=["deployment"])
        assert ended["session"]["status"] == "completed" and ended["session"]["exchange_count"] == 50
        listed = await call(client, "session_list", status="completed", limit=1)
        assert listed["sessions"] == [ended["session"]] and listed["total_count"] == 1
        unknown = await refused(client, "session_get", session_id="00000000-0000-4000-8000-000000000000")
        assert {"success": False, "error_code": "SESSION_NOT_FOUND"}.items() <= unknown.items() and unknown[
            "error_message"
        ]


async def _fifty_at_once(client: Client, session_id: str) -> list[dict[str, Any]]:
    calls = (
        call(client, "exchange_add", session_id=session_id, role="user", content=f"turn {number}")
        for number in range(50)
    )
    return list(await asyncio.gather(*calls))


async def _capture_on_insight(client: Client, session_id: str) -> None:
    """The reference's pattern: recognise, extract, confirm; then the belief answers a question in plain words."""
    insight = await call(
        client,
        "insight_extract",
        session_id=session_id,
        content="The user prefers blue green deployments",
        domain_path=["tech"],
    )
    assert insight["action"] == "created" and insight["belief"]["confidence"]["overall"] == 0.8
    asked = await call(client, "belief_query", query="what is the user's preferred deployment strategy")
    assert insight["belief_id"] in {belief["id"] for belief in asked["beliefs"]}
    pattern = await call(
        client, "pattern_record", type="preference", description="Prefers blue green", evidence=[session_id]
    )
    again = await call(client, "pattern_reinforce", pattern_id=pattern["pattern_id"], session_id=session_id)
    assert again["already_counted"] is True and (await call(client, "pattern_list"))["patterns"] == [again["pattern"]]


async def test_a_transcript_and_a_recorded_session_stand_in_one_list_and_in_one_table(thalweg: Program) -> None:
    assert thalweg("import", "claude-code", str(session_path()), "--json").json()["applied"]
    async with over_stdio(thalweg) as client:
        session_id = (await call(client, "session_start", platform="api", metadata={"claude_session_id": TRANSCRIPT}))[
            "session_id"
        ]
        await call(client, "exchange_add", session_id=session_id, role="user", content="one")
        listed = await call(client, "session_list")
        assert {session_id, TRANSCRIPT} < {session["id"] for session in listed["sessions"]}
        got = await call(client, "session_get", session_id=TRANSCRIPT, include_exchanges=True, exchange_limit=1)
        assert got["exchanges"][0]["sequence"] == got["session"]["exchange_count"]
        rows = thalweg.sql("SELECT origin, count(*) FROM exchanges GROUP BY origin ORDER BY origin")
        assert rows[0] == ["tool", 1] and rows[1][0] == "transcript" and rows[1][1] > 20


async def test_the_same_exchange_sent_twice_at_once_is_one_and_another_under_its_id_is_told_which_stands(
    thalweg: Program,
) -> None:
    async with over_stdio(thalweg) as client:
        session_id = (await call(client, "session_start", platform="api"))["session_id"]
        turn = {"session_id": session_id, "role": "user", "content": "once"}
        meta = {REQUEST_ID_META: "r-1"}
        answers = await asyncio.gather(*(call(client, "exchange_add", meta, **turn) for _ in range(5)))
        [(exchange_id, sequence)] = {(answer["exchange_id"], answer["sequence"]) for answer in answers}
        lost = await answered(client, "exchange_add", {**turn, "content": "twice"}, meta)
        assert lost.is_error and lost.structured_content is not None
        assert lost.structured_content["details"]["allowed"]["exchange_id"] == exchange_id and sequence == 1
        assert (await call(client, "exchange_list", session_id=session_id))["total_count"] == 1
