"""What a newer statement names as what was given up: the former value, tool or person.

`from A to B`, `B instead of A`, `A is gone`, `A left`, `not A`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise

from processors.memory.rules.statement import STATEMENTS, Statement, is_content, measure, stem
from processors.memory.rules.vocabulary import (
    AS_GIVEN_UP,
    AT,
    CUTS,
    HAVE,
    LEAVING,
    RESTRICTS,
    TAKING,
    TAKING_OVER,
    TURNS,
)


def gives_up(older: Statement, newer: Statement) -> bool:
    """The newer names what the older says as what was given up, and speaks of the same thing besides."""
    if older.is_denied:
        return False
    for clause in newer.clauses:
        for given_up in _given_up(clause):
            if given_up and given_up <= older.contents and given_up not in _given_up(older.raw):
                if (
                    given_up <= set(map(stem, older.names | newer.names))
                    and "to" in clause
                    and TURNS & set(map(stem, clause))
                ):
                    return True
                is_value = given_up == _contents_after_relation(older.words)
                if (older.contents & newer.contents) - given_up or (is_value and "replaced" in newer.raw):
                    return True
        gone = _gone(clause)
        elsewhere = newer.contents - _clause_contents(clause)
        if (
            gone
            and gone <= older.contents
            and len((older.contents & elsewhere) - gone) > (clause[0] not in ("not", "no"))
        ):
            return True
    return False


@lru_cache(maxsize=STATEMENTS)
def _clause_contents(words: tuple[str, ...]) -> frozenset[str]:
    return contents(words)


@lru_cache(maxsize=STATEMENTS)
def _gone(words: tuple[str, ...]) -> frozenset[str]:
    """What a clause says has gone, or is not so: `Helen stopped …`, `tox is gone`, `not the old one`."""
    place = next((place for place, word in enumerate(words) if word in LEAVING), 0)
    if words and words[0] in ("not", "no"):
        return contents(word for word in words[1:] if word not in ("any", "more", "longer"))
    return contents(word for word in words[:place] if word not in HAVE) if place <= 4 else frozenset()


@lru_cache(maxsize=STATEMENTS)
def _contents_after_relation(words: tuple[str, ...]) -> frozenset[str]:
    """What stands at the end, after the last word that gives a thing its value."""
    last = max((place for place, word in enumerate(words) if word in AT), default=len(words))
    return frozenset(word for word in words[last + 1 :] if is_content(word))


@lru_cache(maxsize=STATEMENTS)
def _given_up(words: tuple[str, ...]) -> Sequence[frozenset[str]]:
    found: list[frozenset[str]] = []
    for place, word in enumerate(words):
        if any(words[place : place + len(phrase)] == phrase for phrase in AS_GIVEN_UP):
            found.append(_object(words, place + (3 if word == "in" else 2)))
        elif word in LEAVING and not _is_restricted(words[place:]):
            found.append(_object(words, place + 1))
            found.append(_named_before(words, place))
        elif word == "from" and "to" in words[place:] and any(stem(one) in TURNS for one in words):
            found.append(contents(words[place + 1 : words.index("to", place)]))
        elif word == "from" and (TAKING & set(words) or _takes_over(words)):
            found.append(_object(words, place + 1))
        elif (
            word == "longer"
            and place
            and words[place - 1] == "no"
            and stem(words[min(place + 1, len(words) - 1)]) == "use"
        ):
            found.append(_object(words, place + 2))
        elif word == "replaced":
            is_passive = place > 0 and stem(words[place - 1]) == "be"
            found.append(_named_before(words, place) if is_passive else _object(words, place + 1))
    return found


def _is_restricted(words: Sequence[str]) -> bool:
    """Whether something is given up at some times alone: `stopped drinking coffee after six`."""
    return any(word in ("after", "before") and measure(then) is not None for word, then in pairwise(words))


def _takes_over(words: Sequence[str]) -> bool:
    return any(word in TAKING_OVER and after == "over" for word, after in pairwise(words))


def _object(words: Sequence[str], start: int) -> frozenset[str]:
    """The contents of the phrase that begins there, to the next preposition, `and` or end."""
    end = start
    while end < len(words) and words[end] not in AT | RESTRICTS | CUTS and words[end] not in ("and", "or", "but"):
        end += 1
    return contents(words[start:end])


def _named_before(words: Sequence[str], end: int) -> frozenset[str]:
    """The contents of the phrase that a passive verb at this place is about: `PDF was dropped`."""
    if end == 0 or stem(words[end - 1]) != "be":
        return frozenset()
    start = end - 1
    while start > 0 and start > end - 4 and words[start - 1] not in AT and words[start - 1] not in ("and", "but"):
        start -= 1
    return contents(words[start : end - 1])


def contents(words: Iterable[str]) -> frozenset[str]:
    return frozenset(one for one in map(stem, words) if is_content(one))
