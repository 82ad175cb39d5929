"""What changes what: two statements about the same thing, of which the newer one may have made the older one untrue."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processors.memory.rules.change import changes
from processors.memory.rules.translation import in_known_words
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


def test_on_the_sets_for_choosing_most_changes_are_recognised_and_few_harmless_differences(
    capsys: pytest.CaptureFixture[str],
) -> None:
    notes, updates, facts, decisions = (counted(name, capsys) for name in ("notes", "updates", "facts", "decisions"))
    assert notes == dict(change=(26, 30), harmless=(0, 30), german=(9, 10), chinese=(10, 10))
    assert updates == dict(change=(54, 60), harmless=(0, 60)), "docs/search.md has these figures"
    assert facts == dict(
        change=(70, 90),
        harmless=(3, 90),
        german=(35, 40),
        german_harmless=(0, 30),
        chinese=(38, 40),
        chinese_harmless=(1, 30),
    )
    assert decisions == dict(change=(22, 30), harmless=(0, 30))


def test_what_is_told_to_have_ended_in_plain_words_is_a_change_and_what_has_ended_elsewhere_is_none(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert counted("endings", capsys) == dict(
        change=(24, 24), both=(0, 24), free=(10, 40), free_both=(2, 40), plain=(21, 30), plain_both=(2, 30)
    ), "docs/search.md has these figures"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Wir nutzen Redis für Caching.", "Wir nutzen Redis nicht mehr."),
        ("Wir nutzen Redis für Caching.", "Wir haben Redis abgeschafft."),
        ("Ich laufe jeden Morgen.", "Ich laufe nicht mehr."),
        ("我们用Redis做缓存。", "我们不再用Redis了。"),
        ("We stopped using Redis.", "We use Redis for caching."),
        ("The user gave up coffee.", "The user drinks coffee again."),
    ],
)
def test_an_end_is_told_in_german_and_chinese_too_and_what_is_said_to_hold_again_changes_it(
    older: str, newer: str
) -> None:
    assert changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Wir nutzen Redis für Caching.", "Die Queue nutzt Redis nicht mehr."),
        ("我们用 Redis 做缓存。", "队列不再用 Redis 了。"),
        ("We deploy on Fridays.", "We no longer deploy the docs on Fridays."),
        ("Grandma makes pierogi on Sundays.", "So no pierogi this Sunday."),
    ],
)
def test_what_ends_for_another_one_in_part_or_once_changes_nothing(older: str, newer: str) -> None:
    assert not changes(older, newer)


@pytest.mark.parametrize(
    ("language", "found", "wrong"), [("en", (10, 60), (0, 60)), ("de", (2, 20), (1, 20)), ("zh", (4, 20), (0, 20))]
)
def test_of_changes_in_free_words_that_no_rule_was_chosen_on_few_are_recognised_and_hardly_any_harmless_difference(
    language: str, found: tuple[int, int], wrong: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    counts = counted(f"changes_{language}", capsys)
    assert counts == dict(change=found, both=wrong), "docs/search.md has these figures"


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
        ("The choir meets on Mondays.", "From next week on the choir meets on Tuesdays."),
        ("The wiki is hosted on Netlify.", "The wiki can be found on Fly."),
        ("There are four benches in the yard.", "The yard has six benches since May."),
        ("The wheels are locked with uv.", "pdm locks the wheels."),
        ("The manual is optional.", "The manual is mandatory."),
        ("Anyone may edit the page.", "Only the editors may edit the page."),
        ("We support the old printer.", "Support for the old printer has ended."),
        ("The shell is bash.", "We use fish as shell."),
        ("The mill is licensed for ten years.", "The mill is relicensed for twenty years."),
        ("Kim is the head of research.", "Lou is the head of research."),
        ("The alarm is off by default.", "By default the alarm is on."),
        ("Tove runs the kiosk.", "Arne has taken over the kiosk from Tove."),
        ("The fair is planned for March.", "The fair was postponed to May."),
    ],
)
def test_a_change_is_found_by_the_frame_of_a_statement_its_subject_verb_and_values(older: str, newer: str) -> None:
    assert changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Nils wohnt in Mainz.", "Nils ist nach Trier gezogen."),
        ("Der Kurs beginnt um 9 Uhr.", "Der Kurs beginnt k\u00fcnftig um 10 Uhr."),
        ("Die Gebühr beträgt 20 Euro.", "Die Gebühr wurde auf 25 Euro erhöht."),
        ("Der Bäcker verkauft Kuchen.", "Der Bäcker verkauft keinen Kuchen mehr."),
        ("\u5c0f\u738b\u4f4f\u5728\u957f\u6c99\u3002", "\u5c0f\u738b\u642c\u5230\u53a6\u95e8\u4e86\u3002"),
        ("\u95e8\u7968\u662f 20 \u5143\u3002", "\u95e8\u7968\u63d0\u9ad8\u5230 30 \u5143\u3002"),
    ],
)
def test_german_and_chinese_changes_are_found_by_the_same_rules(older: str, newer: str) -> None:
    assert changes(older, newer) and not changes(older, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Nils wohnt in Mainz.", "Die Schwester von Nils wohnt in Trier."),
        ("Nils mag Tee.", "Nils mag auch Kaffee."),
        ("Die Liste liegt im B\u00fcro.", "Vielleicht ziehen wir mit der Liste um."),
        ("\u5c0f\u738b\u559c\u6b22\u8336\u3002", "\u5c0f\u738b\u4e5f\u559c\u6b22\u5496\u5561\u3002"),
        ("The tool is MIT licensed.", "The tool is tested with clang."),
    ],
)
def test_german_and_chinese_additions_and_plans_are_no_changes(older: str, newer: str) -> None:
    assert not changes(older, newer)


@pytest.mark.parametrize(
    ("text", "known"),
    [
        ("Der Server l\u00e4uft jetzt in Dublin.", "the Server run now in Dublin."),
        ("Die Frist wurde auf den 17. Juni verl\u00e4ngert.", "the Frist was extended to the 17 june."),
        ("\u6211\u4eec\u4ece A \u6362\u5230 B\u3002", "we changed from A to B."),
        ("The library is MIT licensed.", "The library is MIT licensed."),
    ],
)
def test_german_and_chinese_are_put_in_the_words_that_the_rules_know(text: str, known: str) -> None:
    assert " ".join(in_known_words(text).split()).replace(" .", ".") == known


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
        ("The fair begins in June.", "The fair ends in August."),
    ],
)
def test_other_names_with_numbers_occasions_places_of_work_and_both_ends_of_a_time_are_no_changes(
    older: str, newer: str
) -> None:
    assert not changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "Fact number 1 about the harbour: ships dock at the north pier.",
            "Fact number 2 about the harbour: ships dock at the south pier.",
        ),
        ("Fact no. 1 about the harbour: the crane is yellow.", "Fact no. 2 about the harbour: the crane is red."),
        ("Step 2 runs the migrations.", "Step 3 runs the migrations."),
        ("The first step runs the migrations.", "The second step runs the migrations."),
        ("Page 12 of the manual describes the valves.", "Page 13 of the manual describes the valves."),
        ("Room 101 has a projector.", "Room 102 has a projector."),
        ("In week 32 the office is closed.", "In week 33 the office is closed."),
        ("The backup of day 3 is in the vault.", "The backup of day 4 is in the vault."),
        (
            "Notes of the meeting, item 1: the budget is 500 euro.",
            "Notes of the meeting, item 2: the budget is 700 euro.",
        ),
        ("Invoice 2024-17 is paid.", "Invoice 2024-18 is paid."),
        ("PR 41 fixes the flaky test.", "PR 42 fixes the flaky test."),
        ("Close issue #12 of the parser.", "Close issue #13 of the parser."),
        ("See section 3 about retries.", "See section 4 about retries."),
        ("Kapitel 3 handelt vom Hafen.", "Kapitel 4 handelt vom Hafen."),
        ("Schritt Nr. 3 startet die Migrationen.", "Schritt Nr. 4 startet die Migrationen."),
        ("第3章讲港口。", "第4章讲港口。"),
    ],
)
def test_a_number_that_names_what_a_statement_is_about_is_not_its_value(older: str, newer: str) -> None:
    assert not changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The garden is so vital to the school.", "The garden is so dear to the school."),
        ("Sailing with the crew is really thrilling.", "Sailing with the crew is really scary."),
        ("The choir made the whole village very glad.", "The choir made the whole village very proud."),
    ],
)
def test_what_there_is_more_and_less_of_is_a_quality_of_which_several_hold_at_once(older: str, newer: str) -> None:
    assert not changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The port is 8080.", "The port is 9090."),
        ("We use version 3 of the protocol.", "We use version 4 of the protocol."),
        ("My phone number is 4711.", "My phone number is 4712."),
        ("My desk is number 14.", "My desk is number 16."),
        ("The meeting is in room 101.", "The meeting is in room 102."),
        ("The launch is in week 32.", "The launch is in week 36."),
        ("The office is on the second floor.", "The office is on the third floor."),
        ("We are on chapter 3 of the book.", "We are on chapter 5 of the book."),
        ("The current sprint is sprint 14.", "The current sprint is sprint 15."),
        ("Budget 500 euro for the fair.", "Budget 700 euro for the fair."),
        ("We deploy with Node 18.", "We deploy with Node 20."),
        ("Room 101 has 20 seats.", "Room 101 has 30 seats."),
        ("Worker 3 of cluster 2 has 16 GB of memory.", "Worker 3 has 32 GB of memory."),
        ("Fact number 1 about the harbour: the gate is open.", "Fact number 1 about the harbour: the gate is closed."),
        ("Update 2026-01-02: the port is 8080.", "Update 2026-01-05: the port is 9090."),
        ("Server 3 hosts the wiki.", "Server 4 has replaced server 3 as host of the wiki."),
    ],
)
def test_a_number_behind_the_verb_is_a_value_and_so_is_what_is_said_of_the_same_number(older: str, newer: str) -> None:
    assert changes(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("The lexer is in C.", "We may rewrite the lexer in Zig."),
        ("The lexer is in C.", "Is the lexer in Zig now?"),
        ("We may use zinc for the roof.", "We may use slate for the roof."),
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
