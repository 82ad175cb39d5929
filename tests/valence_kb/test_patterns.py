"""The life of a pattern: check vectors, and what holds for every order of occurrences."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.valence.rules.conversations import tokens_approx
from processors.valence.rules.patterns import MAX_CONFIDENCE, recorded, reinforced, status_at

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def test_confidence_rises_by_a_tenth_of_what_is_missing_and_the_fifth_occurrence_establishes() -> None:
    pattern = recorded([], None, NOON)
    seen: list[tuple[Any, str]] = [(pattern.confidence, pattern.status)]
    for number in range(5):
        pattern = reinforced(pattern, f"s{number}", NOON) or pytest.fail("a new session counts")
        seen.append((pytest.approx(pattern.confidence, abs=1e-9), pattern.status))
    assert seen == [
        (0.5, "emerging"),
        (0.55, "emerging"),
        (0.595, "emerging"),
        (0.6355, "emerging"),
        (0.67195, "established"),
        (0.704755, "established"),
    ]


def test_a_session_counts_once_and_evidence_that_was_recorded_is_counted() -> None:
    pattern = recorded(["a", "a"], None, NOON)
    assert pattern.evidence == ("a",) and pattern.occurrence_count == 1
    assert reinforced(pattern, "a", NOON + DAY) is None


def test_an_occurrence_never_lowers_a_confidence_nor_takes_the_last_one_back_in_time() -> None:
    after = reinforced(recorded([], 1.0, NOON), "s", NOON - DAY)
    assert after is not None and (after.confidence, after.last_observed) == (1.0, NOON)


def test_without_a_session_every_call_counts() -> None:
    pattern = recorded([], None, NOON)
    for count in (2, 3):
        pattern = reinforced(pattern, None, NOON) or pytest.fail("it counts")
        assert pattern.occurrence_count == count and pattern.evidence == ()


@pytest.mark.parametrize(
    ("status", "days", "now"),
    [
        ("emerging", 13.99, "emerging"),
        ("emerging", 14, "fading"),
        ("established", 14, "established"),
        ("established", 29.99, "established"),
        ("established", 30, "fading"),
        ("established", 179.99, "fading"),
        ("established", 180, "archived"),
        ("emerging", 180, "archived"),
    ],
)
def test_a_pattern_that_is_not_met_again_fades_and_is_archived(status: str, days: float, now: str) -> None:
    assert status_at(status, NOON, NOON + timedelta(days=days)) == now


@given(st.floats(0, 1), st.lists(st.one_of(st.none(), st.sampled_from("abcdefg")), max_size=30))
def test_confidence_never_falls_never_passes_its_limit_and_the_count_is_that_of_the_occurrences(
    start: float, sessions: list[str | None]
) -> None:
    pattern, counted = recorded([], start, NOON), 1
    for session in sessions:
        after = reinforced(pattern, session, NOON)
        assert (after is None) == (session is not None and session in pattern.evidence)
        if after is not None:
            counted += 1
            assert pattern.confidence <= after.confidence <= max(MAX_CONFIDENCE, start)
            pattern = after
    assert pattern.occurrence_count == counted
    assert len(set(pattern.evidence)) == len(pattern.evidence)
    assert pattern.status == ("established" if counted >= 5 else "emerging")


@given(st.integers(0, 10**5))
def test_tokens_are_a_quarter_of_the_characters_rounded_up(characters: int) -> None:
    assert tokens_approx("x" * characters) == characters // 4 + (characters % 4 > 0)
