"""Ids are functions of the event or of the statement."""

import re
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.talos.rules.identifiers import dated_id, first_suggestions, free_session_id, is_session_id, named_id
from streams.events import Event
from tests.talos.making import entry

SESSION = "2026-01-05-ontology-design"


@pytest.mark.parametrize("session_id", [SESSION, "2024-02-29-leap", "2026-01-05-a", "2026-12-31-A.b_c-9"])
def test_a_date_and_a_slug_make_a_session_id(session_id: str) -> None:
    assert is_session_id(session_id)


@pytest.mark.parametrize(
    "session_id",
    [
        "2026-02-30-x",
        "ontology-design",
        "2026-1-5-x",
        "2026-01-05-",
        "2026-01-05",
        "2025-02-29-x",
        "0000-01-01-x",
        "2026-01-05-a--b",
        "2026-01-05-a b",
        "2026-01-05-ü",
        "٢٠٢٦-01-05-x",
        "2026-01-05-x\n",
        "",
    ],
)
def test_anything_else_is_refused(session_id: str) -> None:
    assert not is_session_id(session_id)


def test_a_session_id_has_at_most_128_characters() -> None:
    assert is_session_id("2026-01-05-" + "x" * 117)
    assert not is_session_id("2026-01-05-" + "x" * 118)


def test_a_dated_id_has_the_kind_the_utc_date_and_twelve_digits() -> None:
    assert re.fullmatch(r"insight-2026-01-05-\d{12}", dated_id("insight", entry("x"), 1))


def test_a_dated_id_depends_on_the_event_and_the_position_only() -> None:
    event = entry("x")
    assert dated_id("insight", event, 1) == dated_id("insight", entry("other content"), 1)
    assert dated_id("insight", event, 1) != dated_id("insight", event, 2)
    assert dated_id("insight", event, 1) != dated_id("insight", event.changed(id="event-2"), 1)
    assert dated_id("insight", event, 1) != dated_id("insight", event.changed(source="another producer"), 1)


def test_equal_statements_have_equal_named_ids() -> None:
    assert named_id("belief", "Error handling: explicit!") == named_id("belief", " error  HANDLING explicit")
    assert re.fullmatch(r"belief-error-handling-explicit-[0-9a-f]{8}", named_id("belief", "Error handling: explicit"))


def test_a_named_id_has_at_most_five_words() -> None:
    assert named_id("goal", "one two three four five six").startswith("goal-one-two-three-four-five-")
    assert named_id("goal", "one two three four five six") != named_id("goal", "one two three four five seven")


@given(st.text())
def test_a_named_id_is_short_whatever_the_statement(statement: str) -> None:
    assert len(named_id("belief", statement)) <= len("belief") + 1 + 60 + 1 + 8


def test_the_first_free_suggestion_is_offered() -> None:
    assert free_session_id(SESSION, set(), "salt") == f"{SESSION}-2"
    assert free_session_id(SESSION, {f"{SESSION}-2", f"{SESSION}-3"}, "salt") == f"{SESSION}-4"


def test_when_all_short_suggestions_are_taken_there_is_still_one() -> None:
    taken = set(first_suggestions(SESSION))
    suggestion = free_session_id(SESSION, taken, "salt")
    assert suggestion not in taken and is_session_id(suggestion)
    assert free_session_id(SESSION, taken | {suggestion}, "salt") not in taken | {suggestion}


@given(
    st.from_regex(r"[a-z0-9]+([._-][a-z0-9]+){0,5}", fullmatch=True).map(
        lambda slug: f"2026-01-05-{slug}"[:128].rstrip("._-")
    )
)
def test_every_suggestion_is_a_session_id(session_id: str) -> None:
    assert all(is_session_id(candidate) and candidate != session_id for candidate in first_suggestions(session_id))


def test_a_suggestion_for_the_longest_id_still_fits() -> None:
    longest = "2026-01-05-" + "x" * 117
    assert all(is_session_id(candidate) for candidate in first_suggestions(longest))


def test_the_date_of_an_id_is_that_of_utc() -> None:
    late = datetime(2026, 1, 5, 23, 30, tzinfo=timezone(timedelta(hours=-5))).astimezone(UTC)
    event: Event = entry("x", time=late)
    assert dated_id("journal", event, 0).startswith("journal-2026-01-06-")
