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


def counted(name: str, capsys: pytest.CaptureFixture[str]) -> dict[str, tuple[int, int]]:
    """Of each kind of a fixture: how many pairs are taken for changes, and of how many."""
    some = tomllib.loads((FIXTURES / f"{name}.toml").read_text())
    taken = {kind: [changes(pair["older"], pair["newer"]) for pair in pairs] for kind, pairs in some.items()}
    counts = {kind: (sum(found), len(found)) for kind, found in taken.items()}
    with capsys.disabled():
        print(f"\n{name}, taken for changes: {counts}")
    return counts


def test_of_notes_from_daily_work_four_of_five_changes_are_recognised_outside_english_few(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = counted("notes", capsys)
    assert {kind: total for kind, (_, total) in counts.items()} == dict(change=30, harmless=30, german=10, chinese=10)
    assert counts["change"][0] >= 25 and counts["harmless"][0] == 0, "docs/search.md has these figures"


def test_on_the_set_for_reporting_at_most_one_of_sixty_harmless_differences_is_taken_for_a_change(
    capsys: pytest.CaptureFixture[str],
) -> None:
    counts = counted("updates", capsys)
    assert counts["change"][1] == counts["harmless"][1] == 60
    assert counts["change"][0] >= 39 and counts["harmless"][0] <= 1, "docs/search.md has these figures"


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
        ("The robot is called Gustav and charges in the hall.", "The robot charges in the kitchen now."),
        ("Node 7 runs Debian 11 and has two disks.", "Node 7 has four disks."),
        ("Uploads above 20 MB are rejected.", "Uploads are rejected above 50 MB."),
        ("We cache rendered pages in memcached.", "Rendered pages are cached in Redis, memcached was switched off."),
        ("Leif maintains the payroll scripts.", "The payroll scripts are maintained by Sunniva."),
        ("Sven is the contact at the bank.", "Contact at the bank: Mira."),
        ("Lunch is at 12:00 in the canteen.", "Lunch starts at 12:30 in the canteen."),
        ("The trial lasts 14 days.", "We extended the trial to 30 days."),
        ("The kiosk opens at 7.", "From Monday on the kiosk opens at 6:30."),
        ("Vacation requests go to Helen.", "Send vacation requests to HR, Helen stopped handling them."),
        ("The user wants answers in French.", "The user wants answers in English from now on."),
        ("Tracing is on in the shop.", "Turned tracing off in the shop, it was too slow."),
        ("Deadline for the audit is 1 June.", "The audit is due on 15 June."),
        ("Papers are due on 3 May.", "Papers are due on 3 July."),
        ("The launch is planned for the first week of March.", "The launch slipped to April."),
        ("Acme is on the Gold plan.", "Acme downgraded to the Silver plan."),
    ],
)
def test_a_change_is_found_in_another_order_in_one_of_several_clauses_and_by_who_or_what_has_gone(
    older: str, newer: str
) -> None:
    assert changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Node 3 is down.", "Node 4 is down."),
        ("Fixed a crash in the mixer.", "Fixed a crash in the encoder."),
        ("The report was sent to Otto.", "The report was sent to Mira."),
        ("Postgres 16 runs in production.", "Postgres 16 runs in staging."),
        ("User is learning Rust.", "User is learning Spanish."),
        ("Glad to be part of it.", "Glad to hear it."),
        ("Let me run the tests of the parser.", "Let me run the linter of the parser now."),
        ("Jon is working on a book.", "Jon is working on promoting his shop."),
        ("Rack 2 is full.", "Rack 3 is empty."),
        ("The index has 12 shards.", "The index has two replicas per shard."),
        ("Trial 1: raised the rate to 10, no effect.", "Trial 2: raised the rate to 20, it diverged."),
        ("The team meets on Tuesday.", "The team meets with the customer on Friday."),
    ],
)
def test_other_names_with_numbers_occasions_places_of_work_and_courtesies_are_no_changes(
    older: str, newer: str
) -> None:
    assert not changes(older, newer)


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


DIALOGUE = """
Nadia: Hey Tom! Great to see you. How was the trip?
Tom: Thanks, Nadia! It was amazing. The mountains were so calm.
Nadia: That's great! I'm still thinking about my own trip.
Tom: Definitely! You should go.
Nadia: Yeah, you're right. I love the mountains.
Tom: They're really amazing. I painted them last year.
Nadia: Wow, painting is so calming. I love creating things!
Tom: Same here. My sister is into pottery, and it is her passion.
Nadia: Sounds great! Pottery is a good way to relax.
Tom: Keep going with your drawing, Nadia! It makes a difference.
Nadia: Thanks, Tom! Your support means a lot.
Tom: Anytime! I'm here for you.
Nadia: I started a course in the evening. It was hard at first.
Tom: That is awesome, Nadia. What is it about?
Nadia: It's about gardens. The teacher is kind.
Tom: Gardens are calm places. I have a small one.
Nadia: Bye!
Tom: See you soon!
user: Which port does the server use?
assistant: The server uses port 8080.
user: Thanks, that's it.
assistant: You're welcome! Anything else?
""".strip().splitlines()


def test_what_people_say_to_each_other_changes_nothing() -> None:
    found = [
        (older, newer)
        for place, newer in enumerate(DIALOGUE)
        for older in DIALOGUE[:place]
        if changes(older, newer) or changes(newer, older)
    ]
    assert found == []


@pytest.mark.parametrize(
    ("older", "newer", "is_change"),
    [
        ("Nadia: I live in Bergen.", "Nadia: I moved to Oslo.", True),
        ("Nadia: I live in Bergen.", "Tom: I live in Oslo.", False),
        ("Nadia: My bike is red.", "Tom: My bike is blue.", False),
        ("Owner of the parser: Tom", "Owner of the parser: Nadia", True),
        ("user: The server uses port 8080.", "assistant: The server now uses port 9090.", True),
    ],
)
def test_who_speaks_is_whom_a_statement_is_about(older: str, newer: str, *, is_change: bool) -> None:
    assert changes(older, newer) is is_change
