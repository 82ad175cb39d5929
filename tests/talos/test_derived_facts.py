"""What the store keeps of facts that come again, and which indicators a session shows."""

from __future__ import annotations

from datetime import timedelta

from processors.talos.rules.session_signals import LONG_SESSION_S, SessionState, indicators_now
from streams.topics import DERIVED
from tests.processors.harness import NOW, Store, event


def test_a_statement_made_again_is_the_entity_that_is_there() -> None:
    store = Store()
    found = {"id": "x-1", "label": "Insight", "text": "Tides turn."}
    for number in range(2):
        data = {"source_event_id": f"e{number}", "entities": [found], "relations": [], "session_id": f"s-{number}"}
        store.publish(
            event("talos.entities.extracted", data, id=f"f{number}", time=NOW + timedelta(days=number)),
            topic=DERIVED.name,
        )
    assert store.sql("SELECT session_id, source_event_id, created_at FROM entities") == [
        ("s-0", "e0", NOW.replace(tzinfo=None))
    ]


def test_a_signal_counts_once_a_session_with_its_first_evidence() -> None:
    store = Store()
    for number, session in enumerate(("s-1", "s-1", "s-2")):
        data = {
            "signal_id": "p",
            "session_id": session,
            "description": "d",
            "evidence": [{"relation": "INDICATES", "id": f"x-{number}"}],
        }
        store.publish(event("talos.pattern.signalled", data, id=f"g{number}"), topic=DERIVED.name)
    assert store.sql("SELECT session_id, node_id FROM signal_evidence ORDER BY ALL") == [("s-1", "x-0"), ("s-2", "x-2")]
    assert store.sql("SELECT count(*) FROM pattern_signals") == [(2,)]


def test_every_indicator_of_a_session_is_named() -> None:
    state = SessionState(
        "open", LONG_SESSION_S + 1, False, ["Bash"], [("x-1", "tooling"), ("x-2", "")], followed=[("tired", "tooling")]
    )
    assert indicators_now(state) == {
        "Bash called more than 20 times",
        "tooling friction logged",
        "state tired",
        "session duration > 3 hours",
        "goal not achieved",
    }
