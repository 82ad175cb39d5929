"""Sessions open once and close once; entries are kept; every request is decided."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from processors.frame.reducer import Outcome
from processors.talos.rules.extraction import extract
from processors.talos.rules.identifiers import entry_id, goal_id
from streams.events import Event
from tests.talos.making import NOON, Reduction, entry, friction, make_event

SESSION = "2026-01-05-ontology-design"
LATER = NOON + timedelta(hours=2, milliseconds=900)


def opened(session_id: str = SESSION, *, event_id: str = "open-1", **more: Any) -> Event:
    return make_event(
        "talos.session.opened", {"session_id": session_id, "goal": "Design the ontology", **more}, event_id=event_id
    )


def closed(session_id: str = SESSION, *, time: datetime = LATER, event_id: str = "close-1", **more: Any) -> Event:
    return make_event("talos.session.closed", {"session_id": session_id, **more}, event_id=event_id, time=time)


def refusal(outcome: Outcome) -> tuple[str, str | None]:
    return outcome.status, outcome.code


@pytest.fixture
def reduction() -> Reduction:
    return Reduction()


def test_an_open_makes_a_session_with_its_goal_and_names_searchable(reduction: Reduction) -> None:
    outcome = reduction.apply(opened(persona="Talos", protocol="LBRP", human="Robbie"))
    [session] = reduction.state.rows("talos_sessions")
    assert outcome.status == "applied"
    assert outcome.result == {
        "session_id": SESSION,
        "goal_id": goal_id("Design the ontology"),
        "started_at": "2026-01-05T12:00:00Z",
    }
    assert (session["status"], session["persona"], session["started_at"]) == (
        "open",
        "Talos",
        NOON.replace(tzinfo=None),
    )
    found = {document["kind"]: document for document in reduction.state.rows("documents")}
    assert found["Goal"]["record_id"] == session["goal_id"] and found["Goal"]["session_id"] == SESSION
    names = {kind: (document["text"], document["session_id"]) for kind, document in found.items() if kind != "Goal"}
    assert names == {"Persona": ("Talos", None), "Protocol": ("LBRP", None), "Human": ("Robbie", None)}


def test_the_first_of_two_opens_wins_and_the_suggested_id_works(reduction: Reduction) -> None:
    reduction.apply(opened())
    second = reduction.apply(opened(event_id="open-2"))
    assert refusal(second) == ("refused", "session_exists")
    suggestion = second.result["suggested_session_id"]
    assert suggestion == f"{SESSION}-2"
    assert reduction.apply(opened(suggestion, event_id="open-3")).status == "applied"
    assert reduction.apply(opened(event_id="open-4")).result["suggested_session_id"] == f"{SESSION}-3"


def test_when_nine_are_taken_there_is_still_a_suggestion_that_works(reduction: Reduction) -> None:
    for number, session_id in enumerate([SESSION, *(f"{SESSION}-{n}" for n in range(2, 10))]):
        assert reduction.apply(opened(session_id, event_id=f"open-{number}")).status == "applied"
    suggestion = reduction.apply(opened(event_id="open-late")).result["suggested_session_id"]
    assert reduction.apply(opened(suggestion, event_id="open-later")).status == "applied"


def test_two_namespaces_may_use_one_session_id(reduction: Reduction) -> None:
    reduction.apply(opened())
    other = make_event(
        "talos.session.opened", {"session_id": SESSION, "goal": "Another"}, event_id="open-2", namespace="work"
    )
    assert reduction.apply(other).status == "applied"


@pytest.mark.parametrize("make", [opened, closed])
def test_a_session_id_of_a_foreign_producer_is_checked_too(reduction: Reduction, make: Any) -> None:
    outcome = reduction.apply(make("2026-02-30-x"))
    assert refusal(outcome) == ("refused", "invalid_session_id")
    assert "YYYY-MM-DD-slug" in outcome.result["expected_format"]
    assert reduction.state.keyed == {}


def test_a_close_ends_the_session_with_whole_seconds_between_the_events(reduction: Reduction) -> None:
    reduction.apply(opened(human="Robbie"))
    outcome = reduction.apply(closed(goal_achieved=True, summary="Done."))
    [session] = reduction.state.rows("talos_sessions")
    assert outcome.result["duration_seconds"] == session["duration_seconds"] == 7200
    assert (session["status"], session["goal_achieved"], session["summary"], session["human"]) == (
        "closed",
        True,
        "Done.",
        "Robbie",
    )
    assert session["ended_at"] == LATER.replace(tzinfo=None)
    assert session["event_id"] == "close-1"


def test_an_unknown_goal_stays_unknown(reduction: Reduction) -> None:
    reduction.apply(opened())
    reduction.apply(closed())
    assert reduction.state.rows("talos_sessions")[0]["goal_achieved"] is None


def test_a_clock_that_goes_back_gives_no_negative_duration(reduction: Reduction) -> None:
    reduction.apply(opened())
    assert reduction.apply(closed(time=NOON - timedelta(hours=1))).result["duration_seconds"] == 0


def test_a_session_closes_once(reduction: Reduction) -> None:
    assert refusal(reduction.apply(closed())) == ("refused", "session_not_found")
    reduction.apply(opened())
    reduction.apply(closed(event_id="close-2"))
    assert refusal(reduction.apply(closed(event_id="close-3"))) == ("refused", "session_already_closed")


def test_a_closed_session_is_not_opened_again(reduction: Reduction) -> None:
    reduction.apply(opened())
    reduction.apply(closed())
    assert refusal(reduction.apply(opened(event_id="open-2"))) == ("refused", "session_exists")


def test_an_entry_is_kept_and_searchable_also_after_its_session_closed(reduction: Reduction) -> None:
    reduction.apply(opened())
    reduction.apply(closed())
    event = entry("What remains.", "reflection", session_id=SESSION, domain="technical", confidence=1)
    assert reduction.apply(event).result == {"entry_id": entry_id(event)}
    [row] = reduction.state.rows("talos_journal")
    assert (row["entry_id"], row["content"], row["category"], row["confidence"]) == (
        entry_id(event),
        "What remains.",
        "reflection",
        1.0,
    )
    [document] = [document for document in reduction.state.rows("documents") if document["kind"] == "JournalEntry"]
    assert (document["record_id"], document["session_id"], document["domain"]) == (
        entry_id(event),
        SESSION,
        "technical",
    )


def test_a_friction_is_answered_with_the_id_that_the_stage_derives(reduction: Reduction) -> None:
    event = friction("Read truncates.")
    assert reduction.apply(event).result == {"friction_id": extract(event).entities[0].id}
    assert reduction.state.keyed == {} and reduction.state.inserted == []


@pytest.mark.parametrize("event", [entry(" \n"), friction("\t"), opened(goal="  ")])
def test_blank_text_of_a_foreign_producer_is_refused(reduction: Reduction, event: Event) -> None:
    assert refusal(reduction.apply(event)) == ("refused", "invalid_argument")
    assert reduction.state.keyed == {} and reduction.state.inserted == []


def test_a_replay_gives_the_same_rows(reduction: Reduction) -> None:
    events = [opened(), entry("A thought.", session_id=SESSION), closed(), opened(event_id="open-2")]
    again = Reduction()
    outcomes = [(reduction.apply(event), again.apply(event)) for event in events]
    assert all(first == second for first, second in outcomes)
    assert reduction.state.keyed == again.state.keyed and reduction.state.inserted == again.state.inserted
