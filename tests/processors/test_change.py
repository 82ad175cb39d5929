"""What changes what: two statements about the same thing, of which the newer one may have made the older one untrue."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.memory.rules.change import changes
from processors.valence.rules.tensions import Claim, judge

FIXTURES = Path(__file__).parents[1] / "fixtures"
PAIRS = tomllib.loads((FIXTURES / "statements.toml").read_text())
NOTES = tomllib.loads((FIXTURES / "notes.toml").read_text())
NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


def found(kind: str, use: str) -> tuple[int, int]:
    """How many of these pairs are taken for changes, and of how many."""
    pairs = [pair for pair in PAIRS[kind] if pair["use"] == use]
    return sum(changes(pair["older"], pair["newer"]) for pair in pairs), len(pairs)


@pytest.mark.parametrize("use", ["choosing", "reporting"])
def test_four_of_five_changes_are_recognised_and_of_sixty_harmless_differences_at_most_one_is_taken_for_one(
    use: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (right, changed), (wrong, harmless) = found("change", use), found("harmless", use)
    with capsys.disabled():
        print(f"\n{use}: {right} of {changed} changes recognised, {wrong} of {harmless} harmless differences too")
    assert changed >= 30 and harmless >= 30
    assert right >= 0.8 * changed and wrong <= 1


def test_of_notes_from_daily_work_half_of_the_changes_are_recognised_outside_english_few(
    capsys: pytest.CaptureFixture[str],
) -> None:
    taken = {kind: [changes(pair["older"], pair["newer"]) for pair in pairs] for kind, pairs in NOTES.items()}
    counts = {kind: (sum(some), len(some)) for kind, some in taken.items()}
    with capsys.disabled():
        print(f"\nnotes, taken for changes: {counts}")
    assert {kind: total for kind, (_, total) in counts.items()} == dict(change=30, harmless=30, german=10, chinese=10)
    assert counts["change"][0] >= 16 and counts["harmless"][0] <= 2, "docs/search.md has these figures"


def test_a_change_between_beliefs_is_a_tension() -> None:
    def claim(name: str, content: str, minutes: int) -> Claim:
        return Claim(name, content, 0.7, NOON + timedelta(minutes=minutes))

    pairs = {kind: [pair for pair in PAIRS[kind] if pair["use"] == "choosing"] for kind in ("change", "harmless")}
    judged = {
        kind: [judge(claim("a", pair["older"], 0), claim("b", pair["newer"], 1), None) is not None for pair in some]
        for kind, some in pairs.items()
    }
    assert sum(judged["change"]) >= 0.9 * len(judged["change"]) and sum(judged["harmless"]) <= 3


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The lexer is in C.", "We may rewrite the lexer in Zig."),
        ("The lexer is in C.", "Is the lexer in Zig now?"),
        ("The lexer is in C.", "The lexer is faster in Zig than in C."),
        ("The lexer is in C.", "The lexer is in Zig too."),
        ("It is on port 80.", "It is on port 81."),
    ],
)
def test_plans_questions_comparisons_additions_and_what_an_it_is_about_are_no_changes(older: str, newer: str) -> None:
    assert not changes(older, newer)


def test_a_change_is_found_in_one_of_many_sentences() -> None:
    older = "Two things from today. The lexer is in C. Lunch was late."
    newer = "A long day.\nThe lexer was rewritten in Zig, it took a week. See you."
    assert changes(older, newer) and not changes(newer, newer)


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_can_be_compared_and_none_changes_itself(one: str, other: str) -> None:
    assert changes(one, other) in (True, False) and not changes(one, one)


def test_a_text_of_any_length_is_compared_by_its_beginning() -> None:
    long = "The lexer is in C. " + "word " * 36_000
    assert changes(long, "The lexer was rewritten in Zig.") and not changes("\u6d41" * 180_000, long)
