"""session_open, session_close, journal_write and friction_log: their answers, and what they leave behind."""

from __future__ import annotations

from typing import Any

import pytest

from mcp_ingress.toolsets.talos.session_close import REFLECTION_PROMPT
from mcp_ingress.toolsets.talos.session_names import SessionNames
from processors.talos.rules.identifiers import goal_id, named_id, wordless_id
from streams.errors import Refused
from tests.talos.making import SEED_ENTRY
from tests.talos.node import SmallNode

SESSION = "2026-01-05-ontology-design"
GOAL = "Design the ontology"
PARTS = ["beliefs", "insights", "patterns", "sutras", "protocols", "limitations", "capabilities"]


async def refusal(node: SmallNode, tool: str, **arguments: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await node.call(tool, **arguments)
    return caught.value


# --- session_open


async def test_an_open_answers_what_the_session_inherits(node: SmallNode) -> None:
    answer = await node.call("session_open", session_id=SESSION, goal=GOAL)
    assert answer["success"] and answer["session_id"] == SESSION and "pending" not in answer
    assert answer["inherited_count"] == 0
    assert answer["inherited_summary"] == dict.fromkeys(PARTS, 0)
    assert set(answer["freshness"]) == {"thalweg.memory.v1", "thalweg.telemetry.v1"}


async def test_two_new_beliefs_raise_the_beliefs_by_two_and_the_count_is_the_sum_of_the_parts(node: SmallNode) -> None:
    await node.call("journal_write", content="I believe in tests.", category="observation")
    await node.call("journal_write", content="I believe in small steps.", category="insight")
    answer = await node.call("session_open", session_id=SESSION, goal=GOAL)
    assert answer["inherited_summary"] == {**dict.fromkeys(PARTS, 0), "beliefs": 2, "insights": 1}
    assert answer["inherited_count"] == 3


async def test_what_was_merged_is_not_inherited(node: SmallNode) -> None:
    for _ in range(2):
        await node.call("journal_write", content="Caches lie.", category="insight")
    answer = await node.call("session_open", session_id=SESSION, goal=GOAL)
    assert answer["inherited_summary"]["insights"] == 1


async def test_the_same_id_fails_and_the_suggested_one_works(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    refused = await refusal(node, "session_open", session_id=SESSION, goal=GOAL)
    assert refused.error_code == "session_exists"
    assert refused.extra["suggested_session_id"] == f"{SESSION}-2"
    assert (await node.call("session_open", session_id=f"{SESSION}-2", goal=GOAL))["success"]


async def test_a_refused_open_leaves_no_telemetry(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    await refusal(node, "session_open", session_id=SESSION, goal="Another goal")
    assert [attributes["talos.goal.id"] for attributes in node.telemetry("session.start")] == [
        wordless_id(goal_id(GOAL))
    ]


async def test_an_open_with_the_same_request_id_has_one_effect(node: SmallNode) -> None:
    first = await node.call("session_open", request_id="r", session_id=SESSION, goal=GOAL)
    again = await node.call("session_open", request_id="r", session_id=SESSION, goal=GOAL)
    assert (first["inherited_count"], again["inherited_count"]) == (0, 0)
    assert node.store.sql("SELECT count(*) FROM talos_sessions") == [(1,)]
    assert node.store.sql("SELECT count(*) FROM session_events WHERE event_type = 'session.start'") == [(1,)]


async def test_a_request_id_of_another_call_is_refused(node: SmallNode) -> None:
    await node.call("session_open", request_id="r", session_id=SESSION, goal=GOAL)
    refused = await refusal(node, "session_open", request_id="r", session_id=f"{SESSION}-2", goal=GOAL)
    assert "request id" in refused.message


async def test_the_start_says_goal_persona_protocol_and_human(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    [start] = node.telemetry("session.start")
    names = {"goal": GOAL, "persona": "Talos", "protocol": "LBRP", "human": "Robbie"}
    ids = {f"talos.{kind}.id": wordless_id(named_id(kind, name)) for kind, name in names.items()}
    assert start == ids | {"talos.session.id": SESSION, "talos.inherited_count": 0}
    [goal] = node.telemetry("goal.created")
    assert goal["talos.goal.id"] == ids["talos.goal.id"]
    assert (goal["talos.goal.scope"], goal["talos.session.id"]) == ("session", SESSION)


async def test_names_that_the_caller_leaves_out_are_the_nodes_and_are_recorded_as_defaulted(node: SmallNode) -> None:
    node.services.parts[SessionNames] = SessionNames(human="Ada")
    await node.call("session_open", session_id=SESSION, goal=GOAL, persona="Sage", protocol="")
    await node.call("session_open", session_id=f"{SESSION}-2", goal=GOAL, persona="a", protocol="b", human="c")
    rows = node.store.sql("SELECT persona, protocol, human, defaulted FROM talos_sessions ORDER BY session_id")
    assert rows == [("Sage", "", "Ada", ["human"]), ("a", "b", "c", None)]


async def test_an_event_of_before_there_were_defaults_gives_what_it_gave(node: SmallNode) -> None:
    node.request("talos.session.opened", session_id=SESSION, goal=GOAL, persona="Talos", human="Robbie")
    rows = node.store.sql("SELECT persona, protocol, human, defaulted FROM talos_sessions")
    assert rows == [("Talos", None, "Robbie", None)]


@pytest.mark.parametrize("tool", ["session_open", "session_close", "journal_write", "friction_log"])
async def test_a_bad_session_id_comes_with_format_guidance(node: SmallNode, tool: str) -> None:
    more = {
        "session_open": {"goal": GOAL},
        "journal_write": {"content": "x", "category": "insight"},
        "friction_log": {"description": "x", "category": "tooling"},
    }
    refused = await refusal(node, tool, session_id="2026-02-30-x", **more.get(tool, {}))
    assert refused.error_code == "invalid_session_id"
    assert "YYYY-MM-DD-slug" in refused.extra["expected_format"]
    assert node.published == []


# --- session_close


async def test_a_close_answers_the_sessions_statistics_and_the_references_prompt(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    for succeeded in (True, True, False):
        node.observe("session.tool_call", session__id=SESSION, tool__name="read", tool__success=succeeded)
    node.observe("gen_ai.response", session__id=SESSION, usage__input_tokens=1000, usage__output_tokens=234)
    node.clock.time = node.clock.time.replace(hour=14, second=0)
    answer = await node.call("session_close", session_id=SESSION, goal_achieved=True, summary="Done.")
    assert (answer["duration_seconds"], answer["token_count"], answer["tool_calls"]) == (7200, 1234, 3)
    assert (answer["requires_reflection"], answer["reflection_prompt"]) == (True, REFLECTION_PROMPT)


def test_the_prompt_is_the_references_to_the_space() -> None:
    lines = REFLECTION_PROMPT.split("\n")
    assert lines[0] == "Session closing. Mandatory reflection:"
    assert lines[3] == "2. What insights emerged? (will create Insight entities)  "
    assert lines[-1] == "Respond with natural language; Graphiti will extract entities."
    assert len(lines) == 8


async def test_without_telemetry_the_counts_are_zero_and_the_reflection_may_be_skipped(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    answer = await node.call("session_close", session_id=SESSION, skip_reflection=True)
    assert (answer["token_count"], answer["tool_calls"]) == (0, 0)
    assert (answer["requires_reflection"], answer["reflection_prompt"]) == (False, None)


async def test_the_end_counts_what_the_session_produced(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    await node.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)
    await node.call("friction_log", description="Read truncates.", category="tooling", session_id=SESSION)
    await node.call("session_close", session_id=SESSION, goal_achieved=False)
    [end] = node.telemetry("session.end")
    assert {
        name: end[f"talos.{name}"] for name in ("insights_produced", "frictions_logged", "goal_achieved", "token_count")
    } == {
        "insights_produced": 1,
        "frictions_logged": 1,
        "goal_achieved": False,
        "token_count": 0,
    }
    [change] = node.telemetry("goal.status_change")
    assert (change["talos.goal.from"], change["talos.goal.to"]) == ("active", "abandoned")


async def test_a_close_without_a_verdict_leaves_the_goal_as_it_is(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    await node.call("session_close", session_id=SESSION)
    assert node.telemetry("goal.status_change") == []


async def test_an_unknown_session_and_a_closed_one_are_not_closed(node: SmallNode) -> None:
    assert (await refusal(node, "session_close", session_id=SESSION)).error_code == "session_not_found"
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    await node.call("session_close", session_id=SESSION)
    assert (await refusal(node, "session_close", session_id=SESSION)).error_code == "session_already_closed"
    assert len(node.telemetry("session.end")) == 1


# --- journal_write


async def test_the_answered_ids_are_the_stored_ids(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    answer = await node.call(
        "journal_write",
        content=SEED_ENTRY,
        category="insight",
        session_id=SESSION,
        domain="meta-cognitive",
        confidence=0.85,
    )
    assert {"Insight", "Belief"} <= {entity["type"] for entity in answer["extracted_entities"]}
    assert "LED_TO" in {relation["type"] for relation in answer["extracted_relationships"]}
    stored = node.store.sql("SELECT label, entity_id FROM entities")
    assert {(entity["type"], entity["id"]) for entity in answer["extracted_entities"]} == set(stored)
    edges = node.store.sql("SELECT relation_type, from_id, to_id FROM relations")
    assert {(edge["type"], edge["from"], edge["to"]) for edge in answer["extracted_relationships"]} == set(edges)
    assert node.store.sql("SELECT entry_id FROM talos_journal") == [(answer["entry_id"],)]
    assert "warnings" not in answer


async def test_the_reflection_after_the_close_belongs_to_the_session(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    await node.call("session_close", session_id=SESSION)
    answer = await node.call("journal_write", content="I learned to stop.", category="reflection", session_id=SESSION)
    assert "warnings" not in answer
    assert {relation["type"] for relation in answer["extracted_relationships"]} == {"PRODUCED"}


async def test_an_unknown_session_is_a_warning_and_no_edge(node: SmallNode) -> None:
    answer = await node.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)
    assert answer["success"] and SESSION in answer["warnings"][0]
    assert answer["extracted_relationships"] == []


@pytest.mark.parametrize("confidence", [-0.1, 1.1, 85])
async def test_a_confidence_outside_zero_to_one_is_refused(node: SmallNode, confidence: float) -> None:
    refused = await refusal(node, "journal_write", content="x", category="insight", confidence=confidence)
    assert refused.error_code == "invalid_confidence"


@pytest.mark.parametrize(("tool", "text"), [("journal_write", "content"), ("friction_log", "description")])
async def test_an_unknown_category_comes_with_the_valid_options(node: SmallNode, tool: str, text: str) -> None:
    refused = await refusal(node, tool, **{text: "x"}, category="mood")
    assert refused.error_code == "unknown_category"
    assert len(refused.extra["valid_options"]) in (5, 6)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("session_open", {"session_id": SESSION, "goal": " "}),
        ("journal_write", {"content": "\n", "category": "insight"}),
        ("friction_log", {"description": "", "category": "tooling"}),
    ],
)
async def test_a_blank_text_is_refused_and_named(node: SmallNode, tool: str, arguments: dict[str, Any]) -> None:
    refused = await refusal(node, tool, **arguments)
    assert refused.error_code == "invalid_argument"
    assert any(name in refused.message for name in ("goal", "content", "description"))


async def test_no_text_of_an_entry_or_a_friction_travels_as_telemetry(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    await node.call(
        "journal_write", content="Xylophone. I believe in xylophones.", category="insight", session_id=SESSION
    )
    await node.call("friction_log", description="Xylophone", category="tooling", session_id=SESSION)
    await node.call("session_close", session_id=SESSION, summary="Xylophone")
    telemetry = [event for event in node.published if ".talos." not in event.type]
    assert len(telemetry) == 5
    assert "xylophone" not in str([event.data for event in telemetry]).lower()


# --- friction_log


async def test_the_same_friction_three_times_counts_one_two_three(node: SmallNode) -> None:
    answers = [
        await node.call("friction_log", description=text, category="tooling")
        for text in ("Read cuts.", "read CUTS", " Read cuts ")
    ]
    assert [answer["recurrence_count"] for answer in answers] == [1, 2, 3]
    assert [answer["is_recurring"] for answer in answers] == [False, True, True]
    ids = [answer["friction_id"] for answer in answers]
    assert len(set(ids)) == 3
    assert [friction["id"] for friction in answers[2]["similar_frictions"]] == [ids[1], ids[0]]
    assert answers[2]["similar_frictions"][1]["description"] == "Read cuts."


async def test_at_most_five_earlier_frictions_are_listed(node: SmallNode) -> None:
    answers = [await node.call("friction_log", description="Read cuts", category="tooling") for _ in range(7)]
    assert answers[6]["recurrence_count"] == 7
    assert [friction["id"] for friction in answers[6]["similar_frictions"]] == [
        answer["friction_id"] for answer in answers[5:0:-1]
    ]


async def test_another_category_is_another_friction(node: SmallNode) -> None:
    await node.call("friction_log", description="Too slow", category="tooling")
    assert (await node.call("friction_log", description="Too slow", category="process"))["recurrence_count"] == 1


async def test_a_repeated_request_counts_once_and_answers_the_same(node: SmallNode) -> None:
    first = await node.call("friction_log", request_id="r", description="Read cuts", category="tooling")
    await node.call("friction_log", description="Read cuts", category="tooling")
    again = await node.call("friction_log", request_id="r", description="Read cuts", category="tooling")
    assert {name: first[name] for name in ("friction_id", "recurrence_count")} == {
        name: again[name] for name in ("friction_id", "recurrence_count")
    }


async def test_a_blocking_friction_without_a_session_is_a_warning(node: SmallNode) -> None:
    answer = await node.call("friction_log", description="No network", category="environmental", blocking=True)
    assert "BLOCKED_BY" in answer["warnings"][0]


# --- when the store or the log is behind or down


async def test_a_write_that_is_not_applied_in_time_is_pending_and_guesses_nothing(node: SmallNode) -> None:
    node.is_behind = True
    opened = await node.call("session_open", session_id=SESSION, goal=GOAL)
    assert opened["pending"] and opened["success"]
    assert (opened["inherited_count"], opened["inherited_summary"]) == (None, dict.fromkeys(PARTS))
    closed = await node.call("session_close", session_id=SESSION)
    assert closed["pending"] and closed["duration_seconds"] is closed["tool_calls"] is closed["token_count"] is None
    friction = await node.call("friction_log", description="Slow", category="tooling", session_id=SESSION)
    assert friction["pending"] and friction["friction_id"].startswith("friction-2026-01-05-")
    assert (friction["recurrence_count"], friction["is_recurring"], friction["similar_frictions"]) == (None, None, [])
    assert all(answer["freshness"] for answer in (opened, closed, friction))


async def test_an_entry_for_a_session_that_is_still_on_its_way_gets_no_warning(node: SmallNode) -> None:
    node.is_behind = True
    await node.call("session_open", session_id=SESSION, goal=GOAL)
    answer = await node.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)
    assert "warnings" not in answer
    assert {relation["type"] for relation in answer["extracted_relationships"]} == {"PRODUCED"}


async def test_with_the_store_down_writes_are_degraded_but_published(node: SmallNode) -> None:
    await node.call("friction_log", description="Slow", category="tooling")
    node.reader.is_down = True
    opened = await node.call("session_open", session_id=SESSION, goal=GOAL)
    friction = await node.call("friction_log", description="Slow!", category="tooling")
    closed = await node.call("session_close", session_id=SESSION)
    for answer in (opened, friction, closed):
        assert (answer["success"], answer["degraded"]) == (False, True)
        assert answer["message"] and answer["freshness"]
    assert opened["session_id"] == SESSION and friction["friction_id"]
    written = await node.call("journal_write", content="Caches lie.", category="insight", session_id=f"{SESSION}-9")
    assert written["success"] and "warnings" not in written
    assert len(node.telemetry("session.start")) == len(node.telemetry("session.end")) == 1


async def test_with_the_log_down_writes_are_spooled_and_take_effect_later(node: SmallNode) -> None:
    node.is_down = True
    opened = await node.call("session_open", session_id=SESSION, goal=GOAL)
    written = await node.call("journal_write", content="Caches lie.", category="insight", session_id=SESSION)
    friction = await node.call("friction_log", description="Slow", category="tooling", session_id=SESSION)
    for answer in (opened, written, friction):
        assert (answer["success"], answer["degraded"], answer["spooled"]) == (False, True, True)
    node.is_down = False
    assert await node.spool.drain(node.services.log) == 7
    assert node.store.sql("SELECT session_id FROM talos_sessions") == [(SESSION,)]
    assert node.store.sql("SELECT entry_id FROM talos_journal") == [(written["entry_id"],)]
    assert node.store.sql("SELECT friction_id, occurrence FROM frictions") == [(friction["friction_id"], 1)]
