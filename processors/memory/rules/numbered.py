"""Things that are named by a number.

A number behind a noun tells which one of many is meant where nothing has been said of it yet: before the verb
(`Issue 12 is closed`), and before a colon (`Fact number 1 about the harbour: …`). Behind the verb it is a value:
`listens on port 8080`, `meets in room 101`.
"""

from __future__ import annotations

import re
from functools import lru_cache

from processors.memory.rules.frame import verb_place
from processors.memory.rules.statement import BE, CLAUSE, STATEMENTS, Statement, is_content, measure, stem
from processors.memory.rules.vocabulary import AT, BOUNDS, PIECES, UNITS

_RANK = re.compile(r"\d+(?:\.|st|nd|rd|th)")


def are_two(older: Statement, newer: Statement) -> bool:
    """Whether their numbers name two things.

    One of them may leave out a number: `Worker 3 of cluster 2`, `worker 3`.
    """
    one, other = _names(older), _names(newer)
    return not (one <= other or other <= one)


@lru_cache(maxsize=STATEMENTS)
def names_before_colon(text: str) -> frozenset[str]:
    """The numbers that name what a text is about behind a colon.

    `Step 2 of the deploy: push the image`.
    """
    label, colon, _ = text.partition(": ")
    parts = [Statement(part) for part in CLAUSE.split(label)] if colon else []
    return frozenset().union(*(_names_before(part, verb_place(part.raw, part.names)) for part in parts))


@lru_cache(maxsize=STATEMENTS)
def _names(statement: Statement) -> frozenset[str]:
    """The numbers that name what a statement is about."""
    raw = statement.raw
    verb = verb_place(raw, statement.names)
    opening = _names_before(statement, verb) if verb < len(raw) else frozenset()
    return (
        opening | names_before_colon(statement.text) | {raw[place] for place in _numbers(raw) if _is_piece(raw, place)}
    )


def _names_before(statement: Statement, end: int) -> frozenset[str]:
    raw = statement.raw
    return frozenset(raw[place] for place in _numbers(raw[:end]) if _is_name(raw, place))


def _numbers(raw: tuple[str, ...]) -> list[int]:
    """Where the words with a digit are."""
    return [place for place, word in enumerate(raw) if not word.isalpha() and any(map(str.isdigit, word))]


def _is_name(raw: tuple[str, ...], place: int) -> bool:
    """Whether what has a digit in the opening is a name.

    That is a rank, a word (`n1`), or a number that counts nothing.
    """
    sort = measure(raw[place])
    if sort != "number" or _RANK.fullmatch(raw[place]):
        return sort != "time"
    number = place - 1 if place > 1 and raw[place - 1].isdigit() else place  # `invoice 2024-17`
    before, after = raw[number - 1] if number else "", raw[place + 1] if place + 1 < len(raw) else ""
    is_noun = before.isalpha() and is_content(before) and measure(stem(before)) in (None, "span")
    is_counted = bool(after) and (stem(after) in UNITS or measure(stem(after)) is not None)
    return is_noun and not is_counted and stem(before) not in AT | BOUNDS


def _is_piece(raw: tuple[str, ...], place: int) -> bool:
    """Whether a number behind the verb names one of many things: `close issue 12`."""
    if not place or stem(raw[place - 1]) not in PIECES:
        return False
    return place == 1 or not {raw[place - 2], stem(raw[place - 2])} & (AT | BE)
