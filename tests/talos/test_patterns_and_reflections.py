"""reflect and pattern_check: their answers, what they leave behind, and what they say when a part is down."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mcp_ingress.toolsets.talos.pattern_check import _matching
from processors.embedding.hashing import HashingEmbedder
from streams.errors import Refused, Unavailable
from tests.talos.node import SmallNode

SESSION = "2026-01-05-look"


async def refusal(node: SmallNode, tool: str, **arguments: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await node.call(tool, **arguments)
    return caught.value


async def session(node: SmallNode, name: str, *frictions: str, close: bool = True) -> str:
    session_id = f"{SESSION}-{name}"
    await node.call("session_open", session_id=session_id, goal="Find the leak")
    for description in frictions:
        await node.call("friction_log", description=description, category="tooling", session_id=session_id)
    if close:
        await node.call("session_close", session_id=session_id, goal_achieved=True)
    return session_id


# --- reflect


async def test_a_reflection_yields_an_insight_that_the_session_produced(node: SmallNode) -> None:
    await node.call("session_open", session_id=SESSION, goal="Look")
    answer = await node.call("reflect", content="I realized I open files twice. It is a habit.", session_id=SESSION)
    assert answer["success"] and answer["reflection_id"].startswith("reflection-2026-01-05-")
    [insight] = answer["extracted_entities"]
    assert insight["type"] == "Insight"
    produced = node.store.sql("SELECT to_id FROM relations WHERE relation_type = 'PRODUCED' AND from_id = ?", SESSION)
    assert {answer["reflection_id"], insight["id"]} <= {to_id for (to_id,) in produced}


async def test_a_single_sentence_with_a_cue_is_an_insight_beside_the_reflection(node: SmallNode) -> None:
    answer = await node.call("reflect", content="I realized I open files twice.")
    assert [entity["type"] for entity in answer["extracted_entities"]] == ["Insight"]


@pytest.mark.parametrize(
    ("trigger", "said"), [("pattern_notice", "pattern_notice"), ("a hunch", "other"), (None, "other")]
)
async def test_the_telemetry_says_the_kind_of_trigger_and_never_its_text(
    node: SmallNode, trigger: str | None, said: str
) -> None:
    given = {} if trigger is None else {"trigger": trigger}
    answer = await node.call("reflect", content="Hm, again.", **given)
    [event] = node.telemetry("reflection.triggered")
    assert (event["talos.type"], event["talos.id"]) == (said, answer["reflection_id"])
    assert "hunch" not in str(event) and "again" not in str(event)


async def test_a_blank_reflection_and_a_bad_session_id_are_refused(node: SmallNode) -> None:
    assert (await refusal(node, "reflect", content=" \n")).error_code == "invalid_argument"
    assert (await refusal(node, "reflect", content="x", session_id="look")).error_code == "invalid_session_id"


async def test_a_reflection_for_an_unknown_session_is_kept_with_a_warning(node: SmallNode) -> None:
    answer = await node.call("reflect", content="Well.", session_id=SESSION)
    assert answer["success"] and SESSION in answer["warnings"][0]


async def test_a_reflection_is_written_with_the_store_down_and_spooled_with_the_log_down(node: SmallNode) -> None:
    node.reader.is_down = True
    assert (await node.call("reflect", content="Still here.", session_id=SESSION))["success"]
    node.is_down = True
    answer = await node.call("reflect", content="Still here too.")
    assert (answer["success"], answer["degraded"], answer["spooled"]) == (False, True, True)
    node.is_down, node.reader.is_down = False, False
    await node.spool.drain(node.services.log)
    assert node.store.sql("SELECT text FROM entities WHERE entity_id = ?", answer["reflection_id"]) == [
        ("Still here too.",)
    ]


# --- pattern_check


async def test_two_sessions_are_a_signal_and_the_third_makes_a_pattern(node: SmallNode) -> None:
    for name in ("a", "b"):
        await session(node, name, "The linter hangs")
    current = await session(node, "now", close=False)
    answer = await node.call("pattern_check", session_id=current)
    assert answer["matching_patterns"] == []
    assert answer["emerging_signals"] == [
        {"description": "Recurring friction: The linter hangs", "occurrences": 2, "threshold_for_pattern": 3}
    ]
    await session(node, "c", "The linter hangs")
    await node.call("friction_log", description="The linter hangs", category="tooling", session_id=current)
    answer = await node.call("pattern_check", session_id=current)
    [pattern] = answer["matching_patterns"]
    assert (pattern["status"], pattern["total_occurrences"], pattern["last_occurred"]) == ("emerging", 3, "2026-01-05")
    assert pattern["id"].startswith("pattern-recurring-friction-the-linter-hangs-")
    assert pattern["relevance"] == pytest.approx(0.3 + 0.2 * 0.3)
    assert answer["emerging_signals"] == []
    assert answer["significance"] == {"score": 10, "level": "STABLE"}


async def test_emerging_patterns_and_signals_can_be_left_out(node: SmallNode) -> None:
    for name in ("a", "b", "c"):
        await session(node, name, "The linter hangs")
    current = await session(node, "now", "The linter hangs", close=False)
    answer = await node.call("pattern_check", session_id=current, include_emerging=False)
    assert (answer["matching_patterns"], answer["emerging_signals"]) == ([], [])
    for name in ("d", "e"):
        await session(node, name, "The linter hangs")
    [pattern] = (await node.call("pattern_check", session_id=current, include_emerging=False))["matching_patterns"]
    assert (pattern["status"], pattern["total_occurrences"]) == ("confirmed", 5)


async def test_a_pattern_fits_by_meaning_when_an_embedder_answers(node: SmallNode) -> None:
    for name in ("a", "b", "c"):
        await session(node, name, "The linter hangs")
    current = await session(node, "now", close=False)
    assert (await node.call("pattern_check", session_id=current))["degraded"] is True
    node.services.embedder = embedder = HashingEmbedder()
    context = "Recurring friction: The linter hangs"
    near = await node.call("pattern_check", session_id=current, context=context)
    first, second = embedder.encode([f"{context} Find the leak", context])
    expected = 0.5 * float(np.dot(first, second)) + 0.2 * 0.3
    assert "degraded" not in near
    assert near["matching_patterns"][0]["relevance"] == pytest.approx(expected, abs=1e-5)


async def test_a_state_before_a_friction_is_a_signal(node: SmallNode) -> None:
    session_id = f"{SESSION}-state"
    await node.call("session_open", session_id=session_id, goal="g")
    node.observe("session.state_change", session__id=session_id, to="stuck", category="flow")
    await node.call("friction_log", description="No idea", category="conceptual", session_id=session_id)
    await node.call("session_close", session_id=session_id)
    signals = node.store.sql("SELECT description FROM signals")
    assert ("State stuck is followed by conceptual friction",) in signals
    assert node.store.sql("SELECT relation_type FROM signal_evidence ORDER BY 1") == [("INDICATES",), ("TRIGGERED_BY",)]


async def test_an_unknown_or_malformed_session_is_refused(node: SmallNode) -> None:
    assert (await refusal(node, "pattern_check", session_id=SESSION)).error_code == "session_not_found"
    assert (await refusal(node, "pattern_check", session_id="nope")).error_code == "invalid_session_id"


async def test_with_the_store_down_the_check_is_unavailable(node: SmallNode) -> None:
    node.reader.is_down = True
    with pytest.raises(Unavailable):
        await node.call("pattern_check", session_id=SESSION)


def test_patterns_are_listed_from_three_tenths_up_best_first_and_at_most_twenty() -> None:
    fits = [{"id": f"p{number:02}", "indicators": ["now"], "total_occurrences": number} for number in range(25)]
    misses = [{"id": "miss", "indicators": ["never"], "total_occurrences": 10}]
    listed = _matching(misses + fits, None, {"now"})
    assert [pattern["id"] for pattern in listed[:16]] == [f"p{number:02}" for number in (*range(10, 25), 9)], (
        "ties by id"
    )
    assert len(listed) == 20 and min(pattern["relevance"] for pattern in listed) >= 0.3
    assert _matching(misses, [0.0], set()) == []
