"""Automatic capture: off unless it is asked for, the constants of its signals, at most ten a session."""

from __future__ import annotations

import pytest

from mcp_ingress.toolsets.valence.part import Valence
from processors.valence.rules.capture import MIN_SCORE, capture, signal_of
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent

CAPTURED = (
    "SELECT content, overall, signal, x.extraction_method FROM vkb_session_insights x "
    "JOIN beliefs USING (namespace, belief_id)"
)


@pytest.mark.parametrize(
    ("sentence", "signal", "score"),
    [
        ("Please remember that backups run at night.", "explicit_request", 0.90),
        ("We decided to use Redis because it is quick.", "decision_with_rationale", 0.80),
        ("I prefer tabs.", "stated_preference", 0.75),
        ("Actually, the port is 6380.", "correction", 0.70),
        ("Our gateway uses Redis.", "project_fact", 0.65),
        ("To sum up, latency matters most.", "summary", 0.50),
        ("Good morning.", "passing", 0.35),
        ("Do you remember when we met?", "passing", 0.35),
        ("Would you say that I prefer tabs?", "passing", 0.35),
        ("Should we use Redis because it is quick?", "passing", 0.35),
    ],
)
def test_what_a_sentence_signals(sentence: str, signal: str, score: float) -> None:
    assert signal_of(sentence)[1:] == (signal, score)
    assert (capture("user", sentence) is not None) == (score >= MIN_SCORE)


def test_the_best_sentence_of_a_users_turn_is_kept_and_of_nobody_elses() -> None:
    turn = "Hello there. I prefer tabs. Please remember that backups run at night! Bye"
    assert capture("user", turn) == ("backups run at night!", "explicit_request", 0.9)
    assert capture("assistant", turn) is None and capture("system", turn) is None and capture("user", "") is None


async def test_nothing_is_captured_unless_that_is_switched_on(agent: Agent) -> None:
    await agent.say(await agent.session(), "Remember that backups run at night")
    assert agent.node.store.sql("SELECT count(*) FROM valence_beliefs") == [(0,)]


async def test_a_captured_turn_is_an_insight_of_its_session_linked_to_its_exchange_once(
    agent: Agent, node: SmallNode
) -> None:
    node.services.part(Valence).auto_capture = True
    session_id = await agent.session()
    said = await agent.say(session_id, "Remember that backups run at night", request_id="r")
    again = await agent.say(session_id, "Remember that backups run at night", request_id="r")
    await agent.say(session_id, "Remember that backups run at night", role="assistant")
    assert (said["sequence"], again["exchange_id"]) == (1, said["exchange_id"])
    assert node.store.sql(CAPTURED) == [("backups run at night", 0.9, "explicit_request", "auto")]
    assert node.store.sql("SELECT exchange_id FROM belief_origins") == [(said["exchange_id"],)]


async def test_at_most_ten_are_captured_in_a_session_and_calls_do_not_count(agent: Agent, node: SmallNode) -> None:
    node.services.part(Valence).auto_capture = True
    session_id = await agent.session()
    await agent.call("insight_extract", session_id=session_id, content="Asked for")
    for number in range(12):
        await agent.say(session_id, f"Remember that box {number} is blue")
    await agent.call("insight_extract", session_id=session_id, content="Asked for too")
    assert node.store.sql("SELECT extraction_method, count(*) FROM vkb_session_insights GROUP BY 1 ORDER BY 1") == [
        ("auto", 10),
        ("manual", 2),
    ]
    assert (await agent.call("session_get", session_id=session_id))["session"]["insight_count"] == 12
    assert (await agent.call("session_get", session_id=session_id))["session"]["exchange_count"] == 12
