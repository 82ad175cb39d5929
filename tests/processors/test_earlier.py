"""Which earlier memories a new one is compared with: of many that are near, those that share the most words."""

from __future__ import annotations

from datetime import datetime, timedelta

from processors.memory.read.earlier import MOST, MOST_IN_COMMON, Memory, changed_by

NOON = datetime(2026, 1, 5, 12, 0)
NEWER = "The billing service listens on port 9090."
OLDER = "The billing service listens on port 8080."


def memories(*texts: str, at: datetime = NOON) -> list[Memory]:
    """As the index gives them, the nearest first."""
    return [
        Memory(label, f"m{label}", "JournalEntry", text, at, 0.9 - 0.01 * label) for label, text in enumerate(texts)
    ]


def found(newer: str, others: list[Memory], own: set[str] | None = None) -> list[str]:
    return [memory.text for memory in changed_by(newer, NOON + timedelta(hours=1), others, own or set())]


def test_what_is_changed_is_found_behind_any_number_of_nearer_memories_with_less_in_common() -> None:
    nearer = [f"Ports of service {number} are open." for number in range(3 * MOST_IN_COMMON)]
    assert found(NEWER, memories(*nearer, OLDER)) == [OLDER]


def test_of_several_the_nearest_comes_first_however_many_words_each_shares() -> None:
    other = "Billing service listens on port 7070."
    filler = [f"Ports of service {number} are open." for number in range(MOST_IN_COMMON)]
    assert found(NEWER, memories(other, OLDER, *filler)) == [other, OLDER]
    assert found(NEWER, memories(*filler, OLDER, other)) == [OLDER, other]


def test_what_says_the_very_same_takes_no_place() -> None:
    assert found(NEWER, memories(*[NEWER] * (2 * MOST_IN_COMMON), OLDER)) == [OLDER]


def test_a_chinese_statement_is_found_by_its_characters() -> None:
    nearer = [f"第{number}个机器今天很忙。" for number in range(2 * MOST_IN_COMMON)]
    older, newer = "服务器在都柏林运行。", "服务器现在在法兰克福运行。"
    assert found(newer, memories(*nearer, older)) == found(newer, memories(older)) == [older]


def test_what_is_later_its_own_or_long_takes_no_place_and_is_not_named() -> None:
    later = memories(*[OLDER] * MOST_IN_COMMON, at=NOON + timedelta(hours=1))
    long = memories(*["The billing service listens on port 7070. " * 200] * MOST_IN_COMMON)
    own = memories(OLDER)[0]._replace(record_id="own")
    assert found(NEWER, [*later, *long, own, *memories(OLDER)], {"own"}) == [OLDER]
    assert not found("It all began so. " * 400 + NEWER, memories(OLDER))


def test_at_most_ten_are_named() -> None:
    ports = [f"The billing service listens on port {port}." for port in range(7000, 7000 + MOST_IN_COMMON)]
    assert len(found(NEWER, memories(*ports))) == MOST < len(ports)
