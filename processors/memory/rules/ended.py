"""What a statement says has ended: `we stopped using A`, `A is not used any more`, `we moved B off A`.

All that it names must be in the older statement, and one word alone must be a value there: the end of one thing is not
that of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from processors.memory.rules.frame import frame_of, without
from processors.memory.rules.occasion import is_told
from processors.memory.rules.statement import BE, ENDED, STATEMENTS, Statement, is_content, measure, place_of, stem
from processors.memory.rules.verbs import ENDINGS
from processors.memory.rules.vocabulary import AT, CUTS, RESTRICTS, TURNS
from processors.memory.rules.words import word_set

_STOPS = word_set(
    "stopped quit dropped abandoned discontinued retired removed cancelled canceled scrapped ditched axed"
)
"""Before what somebody has ended, or behind `is`."""
_OVER = tuple(
    tuple(phrase.split())
    for phrase in (
        "got rid of",
        "phased out",
        "shut down",
        "called off",
        "thrown out",
        "taken out",
        "are off",
        "is off",
    )
)
"""What says the same in several words."""
_LONGER = (*ENDED, ("any", "longer"))
_AWAY = (("off",), ("away", "from"))
"""What somebody has turned from stands behind."""
_NOT = word_set("no not never")
_SIGNS = _STOPS | ENDINGS | word_set("longer more anymore off away rid phased shut called thrown taken disabled over")
"""A statement with none of these words says of nothing that it has ended."""
_REASONS = word_set("because since due so thanks")
_RELEASES = word_set("release version")
_ANOTHER = word_set("now it they we i is are was were")
"""Behind `and` they begin another statement."""
_USES = word_set("us use using used hav having do doing finish complet job practic habit ther")
"""What says no more of a thing than that it was."""
_TIMES = word_set("last week month year yesterday ago recent final today summer winter spring autumn now")
_SPEAKERS = word_set("we i user")
_DETERMINERS = word_set("the our my his her their its a an all any every each this these that")


def ends(older: Statement, newer: Statement) -> bool:
    """Whether the newer says that what the older says has ended."""
    ended = _ended(newer.raw)
    if not ended or older.is_denied or is_told(older) or _ended(older.raw):
        return False
    said = _said(older)
    if without(ended, said):
        ended -= {word for word in ended - said if word in _TIMES or measure(word) in ("month", "span", "weekday")}
        if not ended or without(ended, said):
            return False
    return len(ended) > 1 or (_is_of_all(older) and bool(ended & _values(older)))


@lru_cache(maxsize=STATEMENTS)
def _said(statement: Statement) -> frozenset[str]:
    """The contents of a statement, and of `every-morning` the morning."""
    spans = (word.rpartition("-")[2] for word in statement.words if measure(word) == "frequency")
    return statement.contents.union(spans)


@lru_cache(maxsize=STATEMENTS)
def _values(statement: Statement) -> frozenset[str]:
    """What is used, kept or done: the last word of each phrase behind the verb and names in it.

    In `we use A for B` both.
    """
    frame = frame_of(statement)
    is_about = frame.verb == "be" or statement.raw[0] in _SPEAKERS
    named = [[word for word in phrase.words if measure(word) is None] for phrase in frame.phrases]
    names = {stem(name) for name in statement.names}.intersection(word for words in named for word in words)
    return frozenset(names).union(words[-1] for words in named if words) | (frame.head if is_about else frozenset())


def _is_of_all(statement: Statement) -> bool:
    """Whether it is not said of one by name: in `Ana uses Vim` others may have stopped."""
    first, second = (*statement.raw, "")[:2]
    is_verb = second.endswith("s") and stem(second) == frame_of(statement).verb
    return first in _DETERMINERS | _SPEAKERS or first.endswith("s") or not is_verb


@lru_cache(maxsize=STATEMENTS)
def _ended(raw: tuple[str, ...]) -> frozenset[str]:
    """The stems of what a statement says has ended; none where it says nothing of the kind."""
    if _SIGNS.isdisjoint(raw):
        return frozenset()
    words = list(raw[: _end(raw)])
    left = _without_longer(words) or _without_stop(words)
    return frozenset(one for one in map(stem, left) if is_content(one) and one not in _USES)


def _end(raw: Sequence[str]) -> int:
    """Where a statement begins to say why, with which release, or something else."""
    for place, (word, after) in enumerate(zip(raw, (*raw[1:], ""), strict=True)):
        if place > 1 and (word in _REASONS or after in _RELEASES or (word == "and" and after in _ANOTHER)):
            return place
    return len(raw)


def _without_longer(words: Sequence[str]) -> list[str]:
    """The words of `we do not use A any more` without what says that it is over."""
    for phrase in _LONGER:
        place = place_of(words, phrase)
        if place is not None and not _NOT.isdisjoint(words):
            return [word for word in (*words[:place], *words[place + len(phrase) :]) if word not in _NOT]
    return []


def _without_stop(words: Sequence[str]) -> list[str]:
    """The words of `we stopped using A` or `we moved B off A` without what says that it is over."""
    near = zip(("", *words), words, (*words[1:], ""), (*words[2:], "", ""), strict=False)
    for place, (before, word, after, then) in enumerate(near):
        is_passive = word in _STOPS | ENDINGS | {"disabled"} if before in BE else word in ENDINGS and not after
        has_object = bool(after) and after not in AT | CUTS | RESTRICTS and after not in ("by", "and", "before")
        is_given_up = word == "stopped" and after == "on" and not (then and measure(then))
        is_over = before in BE and word == "over" and not after
        if is_passive or is_over or is_given_up or (word in _STOPS and has_object):
            return [*words[:place], *words[place + 1 :]]
    for phrase in _OVER:
        if (start := place_of(words, phrase)) is not None:
            return [*words[:start], *words[start + len(phrase) :]]
    turned = next((place for place, word in enumerate(words) if stem(word) in TURNS), None)
    for phrase in _AWAY:
        start = place_of(words, phrase)
        if turned is not None and start is not None and turned < start:
            return [*words[:turned], *words[turned + 1 : start], *words[start + len(phrase) :]]
    return []
