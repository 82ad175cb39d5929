"""What a closed session shows, and what several sessions make of it."""

from __future__ import annotations

from datetime import timedelta

from processors.talos.read.session_state import read_state
from processors.talos.rules.session_signals import SessionState, signals
from streams.topics import DERIVED, MEMORY, TELEMETRY
from tests.processors.harness import NOW, Store, event, opened

CALM = SessionState("closed", 600, True, [], [])


def test_an_ordinary_session_shows_nothing():
    assert list(signals(CALM)) == []


def test_a_busy_tool_beside_a_friction_is_a_signal_for_each_category():
    state = CALM._replace(busy_tools=["read"], frictions=[("f1", "conceptual"), ("f2", "tooling")])
    assert [signal.description for signal in signals(state)] == [
        "Tool read called >20 times correlates with conceptual friction",
        "Tool read called >20 times correlates with tooling friction",
    ]


def test_a_long_session_counts_only_while_its_goal_is_not_achieved():
    long = CALM._replace(duration_s=10_801)
    assert list(signals(long)) == []
    for achieved in (False, None):
        [signal] = signals(long._replace(goal_achieved=achieved))
        assert signal.description == "Session longer than 3 hours without achieving its goal"
        assert "goal not achieved" in signal.indicators


def tool_call(number, session_id, success=True):
    attributes = {"talos.session.id": session_id, "talos.tool.name": "read", "talos.tool.success": success}
    return event(
        "session.tool_call", {"attributes": attributes, "trace_id": f"sess-{session_id}"}, id=f"{session_id}-{number}"
    )


def test_the_state_is_read_from_what_the_session_left():
    store, session = Store(), "2026-01-05-a"
    close = event(
        "talos.session.closed", {"session_id": session, "goal_achieved": False}, id="c", time=NOW + timedelta(hours=4)
    )
    store.publish(opened(session), close)
    store.publish(*(tool_call(number, session) for number in range(21)), topic=TELEMETRY.name)
    state = read_state(store.database.cursor(), "default", session)
    assert state == SessionState("closed", 14_400, False, ["read"], [])
    assert read_state(store.database.cursor(), "other", session) is None


def test_three_calls_of_which_one_failed_are_a_success_rate_of_two_thirds():
    store, session = Store(), "2026-01-05-a"
    store.publish(opened(session))
    store.publish(*(tool_call(number, session, number != 1) for number in range(3)), topic=TELEMETRY.name)
    [(calls, rate)] = store.sql("SELECT calls, success_rate FROM session_tool_usage WHERE tool_name = 'read'")
    assert (calls, round(rate, 4)) == (3, 0.6667)


def test_a_state_lasts_until_the_next_and_the_last_one_to_the_end():
    store, session = Store(), "2026-01-05-a"
    close = event("talos.session.closed", {"session_id": session}, id="c", time=NOW + timedelta(hours=4))
    store.publish(opened(session), close, topic=MEMORY.name)
    for hour, state in ((0, "momentum"), (1, "stuck")):
        attributes = {"talos.session.id": session, "talos.to": state, "talos.category": "flow"}
        change = event("session.state_change", {"attributes": attributes}, id=state, time=NOW + timedelta(hours=hour))
        store.publish(change, topic=TELEMETRY.name)
    fractions = store.sql("SELECT state, duration_fraction, intensity FROM session_states ORDER BY 1")
    assert fractions == [("momentum", 0.25, 0.5), ("stuck", 0.75, 0.5)]


def signalled(session):
    data = {"signal_id": "s1", "session_id": session, "description": "reads too much", "indicators": ["many reads"]}
    return event("talos.pattern.signalled", data, id=f"p-{session}")


def test_two_sessions_make_a_signal_the_third_a_pattern_and_the_fifth_confirms_it():
    store = Store()
    store.publish(signalled("a"), signalled("b"), signalled("b"), topic=DERIVED.name)
    assert store.sql("SELECT description, occurrences FROM signals") == [("reads too much", 2)]
    assert store.sql("SELECT * FROM patterns") == []
    store.publish(signalled("c"), topic=DERIVED.name)
    assert store.sql("SELECT name, status, total_occurrences FROM patterns") == [("reads too much", "emerging", 3)]
    store.publish(signalled("d"), signalled("e"), topic=DERIVED.name)
    assert store.sql("SELECT status, total_occurrences FROM patterns") == [("confirmed", 5)]
