"""The tools of Valence over stdio, compared with their reference: each argument, each answer's shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.e2e.program import Program
from tests.e2e.test_agent import call, over_stdio, refused
from tests.sql.test_questions import QUESTIONS

pytestmark = pytest.mark.timeout(300)

REFERENCE: Mapping[str, Any] = json.loads(
    (Path(__file__).parents[1] / "valence" / "reference.json").read_text(encoding="utf-8")
)
"""The reference's input schemas and printed responses, word for word, by tool."""
ROOM = "!room:example.com"
STRATEGY = "user's preferred deployment strategy"


class Conversation:
    """A client that keeps which arguments of which tools it has used, and compares each answer with what the reference
    prints.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self.used: dict[str, set[str]] = {}

    async def ask(self, tool: str, **arguments: Any) -> dict[str, Any]:
        self.used.setdefault(tool, set()).update(arguments)
        answer = await call(self._client, tool, **arguments)
        assert answer["success"] is True
        if printed := REFERENCE[tool].get("response"):
            assert_shape(printed, answer, tool)
        return answer


def assert_shape(printed: Any, found: Any, at: str) -> None:
    """Everything that is printed is there, with a value of the same JSON type.

    A list is compared by its first element.
    """
    if isinstance(printed, Mapping):
        assert isinstance(found, Mapping), at
        for name, value in printed.items():
            assert name in found, f"{at}.{name}"
            assert_shape(value, found[name], f"{at}.{name}")
    elif isinstance(printed, list):
        assert isinstance(found, list), at
        if printed and found:
            assert_shape(printed[0], found[0], f"{at}[]")
    else:
        kinds = (int, float) if isinstance(printed, float) else type(printed)
        assert isinstance(found, kinds) and isinstance(found, bool) == isinstance(printed, bool), f"{at}: {found!r}"


def assert_holds(printed: Any, shown: Any, at: str) -> None:
    """The schema that is shown says what the reference prints.

    It may accept another type besides, and describe what the reference does not.
    """
    if isinstance(printed, Mapping):
        for name, value in printed.items():
            assert name in shown, f"{at}.{name}"
            if not (name == "description" and at == "insight_extract.properties.entities"):
                assert_holds(value, shown[name], f"{at}.{name}")
    elif isinstance(shown, list) and isinstance(printed, str):
        assert printed in shown, at
    else:
        assert printed == shown, at


async def test_every_request_that_the_reference_prints_is_answered_in_the_printed_shape(thalweg: Program) -> None:
    async with over_stdio(thalweg) as client:
        shown = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools if tool.name in REFERENCE}
        assert set(shown) == set(REFERENCE) and len(REFERENCE) == 19
        for name, printed in REFERENCE.items():
            assert_holds(printed["input"], shown[name], name)
        talk = Conversation(client)
        session_id = await _conversation(talk)
        entity_id = await _beliefs(talk)
        await _tensions(talk, entity_id)
        await _patterns_and_insights(talk, session_id)
        await _end(talk, session_id)
        assert talk.used == {name: set(printed["input"]["properties"]) for name, printed in REFERENCE.items()}
        _asked_in_sql(thalweg)
        for tool in REFERENCE:
            problem = await refused(client, tool, nonsense=1)
            assert (
                problem["success"] is False and problem["error_code"] == "INVALID_PARAMS" and problem["error_message"]
            ), tool


async def _conversation(talk: Conversation) -> str:
    started = await talk.ask(
        "session_start", platform="matrix", project_context="deployment", external_room_id=ROOM, metadata={"n": 1}
    )
    session_id: str = started["session_id"]
    found = await talk.ask("session_find_by_room", external_room_id=ROOM, platform="matrix", status="active")
    assert found["session"] == started["session"]
    for number, role in enumerate(("user", "assistant", "system"), 1):
        added = await talk.ask(
            "exchange_add", session_id=session_id, role=role, content=f"turn {number}", tool_uses=[{"name": "Bash"}]
        )
        assert added["sequence"] == number and added["exchange"]["id"] == added["exchange_id"]
    listed = await talk.ask("exchange_list", session_id=session_id, limit=2, offset=1)
    assert [exchange["content"] for exchange in listed["exchanges"]] == ["turn 2", "turn 3"] and listed[
        "total_count"
    ] == 3
    got = await talk.ask("session_get", session_id=session_id, include_exchanges=True, exchange_limit=1)
    assert got["exchanges"] == listed["exchanges"][1:]
    listed = await talk.ask("session_list", platform="matrix", project_context="deployment", status="active", limit=5)
    assert [session["id"] for session in listed["sessions"]] == [session_id]
    return session_id


async def _beliefs(talk: Conversation) -> str:
    """The reference's first pattern: query, then answer, then capture. The id of the entity that it is about."""
    assert (await talk.ask("belief_query", query=STRATEGY))["total_count"] == 0
    stated = await talk.ask(
        "belief_create",
        content="The user prefers blue green deployments",
        confidence={"overall": 0.8, "source_reliability": 0.9},
        domain_path=["tech", "architecture"],
        source_type="document",
        source_ref="The runbook",
        entities=[{"name": "Deployments", "type": "concept", "role": "subject"}],
        valid_from="2025-01-15T10:30:00Z",
    )
    belief = stated["belief"]
    entity_id: str = belief["entities"][0]["entity"]["id"]
    found = await talk.ask(
        "belief_query",
        query=STRATEGY,
        domain_filter=["tech", "architecture"],
        entity_id=entity_id,
        include_superseded=False,
        limit=20,
    )
    assert found["total_count"] == 1 and found["beliefs"][0]["source"] == belief["source"]
    assert found["beliefs"][0]["confidence"] == {"overall": 0.8, "source_reliability": 0.9}
    newer = await talk.ask(
        "belief_supersede",
        old_belief_id=belief["id"],
        new_content="The user prefers canary deployments",
        reason="They said so",
        confidence={"overall": 0.9},
    )
    assert (
        newer["new_belief"]["source"] == belief["source"]
        and newer["old_belief"]["superseded_by_id"] == newer["new_belief"]["id"]
    )
    got = await talk.ask("belief_get", belief_id=belief["id"], include_history=True, include_tensions=True)
    assert [step["id"] for step in got["history"]] == [belief["id"], newer["new_belief"]["id"]] and got[
        "tensions"
    ] == []
    searched = await talk.ask("entity_search", query="deploy", type="concept", limit=20)
    entity = await talk.ask("entity_get", entity_id=entity_id, include_beliefs=True, belief_limit=10)
    assert searched["entities"] == [entity["entity"]] and [row["id"] for row in entity["beliefs"]] == [
        newer["new_belief"]["id"]
    ]
    return entity_id


async def _tensions(talk: Conversation, entity_id: str) -> None:
    """The reference's third pattern: create, list by the entity, resolve."""
    stated = await talk.ask(
        "belief_create", content="The user never prefers canary deployments", entities=[{"name": "deployments"}]
    )
    [ahead] = stated["tensions_detected"]
    listed = await talk.ask("tension_list", status="detected", severity="low", entity_id=entity_id, limit=20)
    assert [tension["id"] for tension in listed["tensions"]] == [ahead["id"]]
    ended = await talk.ask("tension_resolve", tension_id=ahead["id"], resolution="A typing error", action="supersede_b")
    assert ended["tension"]["status"] == "resolved" and [belief["status"] for belief in ended["beliefs"]] == [
        "active",
        "superseded",
    ]


async def _patterns_and_insights(talk: Conversation, session_id: str) -> None:
    """The reference's second pattern: recognise, extract, confirm."""
    insight = await talk.ask(
        "insight_extract",
        session_id=session_id,
        content="The user reviews on Fridays",
        domain_path=["habits"],
        confidence=0.8,
        entities=[{"name": "reviews"}],
    )
    assert insight["belief"]["source"]["session_id"] == session_id and insight["belief"]["confidence"] == {
        "overall": 0.8
    }
    recorded = await talk.ask(
        "pattern_record",
        type="topic_recurrence",
        description="Asks for deployments",
        evidence=[session_id],
        confidence=0.5,
    )
    again = await talk.ask("pattern_reinforce", pattern_id=recorded["pattern_id"], session_id=session_id)
    assert again["already_counted"] is True
    listed = await talk.ask("pattern_list", type="topic_recurrence", status="emerging", min_confidence=0, limit=20)
    assert listed["patterns"] == [again["pattern"]]


async def _end(talk: Conversation, session_id: str) -> None:
    ended = await talk.ask(
        "session_end", session_id=session_id, summary="Canaries", themes=["deployment"], status="completed"
    )
    assert ended["session"]["insight_count"] == 1 and ended["session"]["exchange_count"] == 3
    assert (await talk.ask("session_get", session_id=session_id))["session"] == ended["session"]


def _asked_in_sql(thalweg: Program) -> None:
    """The documented questions about conversations and beliefs are asked of the node that this conversation was held
    with.
    """
    titles = {title.split(". ", 1)[1]: sql for title, sql, _ in QUESTIONS}
    traced = thalweg.sql(titles["Which words, call and record made a belief, and what has it become?"])
    assert [(row[0], row[1], row[4], row[7]) for row in traced] == [
        ("turn 3", "insight_extract", "thalweg.memory.v1", "The user reviews on Fridays")
    ]
    steps = thalweg.sql(titles["What does a belief come to, step by step?"])
    assert [
        "The user prefers blue green deployments",
        1,
        "The user prefers canary deployments",
        "They said so",
        True,
    ] in steps
    [ended] = thalweg.sql(titles["What contradicted what, how badly, and how did it end?"])
    assert (
        ended[:2] == ["The user prefers canary deployments", "The user never prefers canary deployments"]
        and ended[5] == "resolved"
    )
    said = thalweg.sql(titles["What was said in a room, and what was concluded from it?"])
    assert [row[2:4] for row in said] == [["turn 1", None], ["turn 2", None], ["turn 3", "The user reviews on Fridays"]]
    assert len(thalweg.sql(titles["Which patterns are alive, and how sure are they?"])) == 1
    moment = (
        "SELECT content FROM belief_history WHERE valid_from <= TIMESTAMP '2025-02-01' "
        "AND (valid_until IS NULL OR valid_until > TIMESTAMP '2025-02-01')"
    )
    assert ["The user prefers blue green deployments"] in thalweg.sql(moment)  # held then, known since
    assert thalweg.sql(f"{moment} AND known_from <= TIMESTAMP '2025-02-01'") == []
