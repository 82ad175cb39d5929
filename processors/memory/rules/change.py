"""Whether of two statements about the same thing one changes what the other says.

Both are sentences in plain English, German or Chinese, as people and agents write them. A change is recognised where
one of these holds: both say the same of the same thing but for one value, in any order; the newer names what was given
up (`from A to B`, `instead of A`); it says by its verb that a thing has gone elsewhere (`moved to`, `rewritten in`); it
is about the same thing, and gives another value for the same property (`replacement.py`); one denies what the other
says. Additions, other aspects, other things, plans, questions and comparisons are not changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from processors.memory.rules.ended import ends
from processors.memory.rules.former import contents, gives_up
from processors.memory.rules.numbered import are_two
from processors.memory.rules.occasion import is_brief
from processors.memory.rules.replacement import replaces
from processors.memory.rules.sentences import statements_of
from processors.memory.rules.slots import HEAD, Slot, difference, meant, slots_of
from processors.memory.rules.statement import STATEMENTS, Statement, is_content, measure, stem
from processors.memory.rules.translation import side_by_side
from processors.memory.rules.vocabulary import (
    AT,
    AUXILIARIES,
    BEING,
    CASES,
    CUTS,
    ENDS,
    GERUND,
    IS,
    MODIFIES,
    OCCASIONS,
    OF,
    ON_OFF,
    OPEN,
    OPPOSITES,
    OWNS,
    PARTICIPLE,
    PARTICIPLES,
    PLACES,
    PROPERTIES,
    QUALITIES,
    QUALITY_ENDINGS,
    RESTRICTS,
    SCENES,
    SOLE,
    STATES,
    TARGETS,
    TIMES,
    TOWARDS,
    TURNS,
    UNITS,
    VAGUE,
)

PAIRS = 2048
"""The answer of a write and the stage `changes` compare the same pairs, one soon after the other."""


@lru_cache(maxsize=PAIRS)
def changes(older: str, newer: str) -> bool:
    """Whether a sentence of the newer text changes what a sentence of the older one says."""
    return any(_revises(one, other) or _denies(one, other) for one, other in _pairs(older, newer))


def revises(older: str, newer: str) -> bool:
    """Whether a sentence of the newer text gives another value for what a sentence of the older one says."""
    return any(_revises(one, other) for one, other in _pairs(older, newer))


def _pairs(older: str, newer: str) -> Iterator[tuple[Statement, Statement]]:
    """Sentences of both that may be about the same thing. One that both texts have changes nothing."""
    older, newer = side_by_side(older, newer)
    for other in statements_of(newer):
        for one in statements_of(older):
            if not one.contents.isdisjoint(other.contents) and one.text not in newer and other.text not in older:
                yield one, other


def _revises(older: Statement, newer: Statement) -> bool:
    if gives_up(older, newer):
        return True
    if are_two(older, newer):
        return False
    if replaces(older, newer):
        return True
    if newer.is_denied or older.is_denied or _is_told(older) or _is_told(newer):
        return False
    return _turns(older, newer) or _has_another_value(older, newer) or _fills_slot(older, newer)


@lru_cache(maxsize=STATEMENTS)
def _is_told(statement: Statement) -> bool:
    """Whether it tells of an occasion, which another one does not change: `fixed a bug in …`."""
    words, stems = statement.plain, statement.words
    if words and PARTICIPLE.fullmatch(words[0]) and stems[0] not in TURNS and not IS & set(statement.raw):
        return True
    passive = zip(statement.raw, statement.raw[1:], strict=False)
    return any(before in ("was", "were") and _is_done(word) for before, word in passive)


def _is_done(word: str) -> bool:
    """Whether it is the participle of a verb that does not say by itself how something is from then on."""
    is_participle = word.removeprefix("re") in PARTICIPLES or bool(PARTICIPLE.fullmatch(word))
    return is_participle and stem(word) not in TURNS | ON_OFF


def _fills_slot(older: Statement, newer: Statement) -> bool:
    """Both say the same, in any order, but for the value of one relation.

    The newer may leave out what else the older says. It may not say more, unless it says that something has changed.
    """
    is_of_same = bool(_subject(newer)) and _subject(older) <= newer.contents | VAGUE
    if not is_of_same and "by" not in newer.words:
        return False
    return any(_is_filled(older, newer, one, other) for one in _ends(older.words) for other in _ends(newer.words))


def _is_filled(older: Statement, newer: Statement, one: int, other: int) -> bool:
    before, after = older.words[:one], newer.words[:other]
    is_same = bool(_subject(newer)) and _subject(older) <= (meant(before) & meant(after)) | VAGUE
    if not is_same and "by" not in after:
        return False
    found = difference(before, after, BEING)
    if not is_same or any(slot.relation == HEAD for slot in found.newer):
        return _is_other_agent(newer, found.older, found.newer)
    relations = [slot.relation for slot in found.newer]
    lacking = [slot for slot in found.newer if slot.relation not in {slot.relation for slot in found.older}]
    if len(found.newer) - len(lacking) != 1 or len(set(relations)) < len(relations):
        return False
    [new] = [slot for slot in found.newer if slot not in lacking]
    is_modified = (
        new.relation == "be" and not all(map(measure, new.words)) and all(slot.relation in MODIFIES for slot in lacking)
    )
    if lacking and not newer.is_marked and not is_modified:
        return False
    if new.relation != "be" and any(slot.relation == "be" for slot in found.older):
        return False
    olds = [slot for slot in found.older if slot.relation == new.relation]
    if len(olds) != 1 or any(slot.relation in CASES for slot in found.older if slot not in olds):
        return False
    old = olds[0]
    if any(sum(measure(word) == "number" for word in slot.words) > 1 for slot in (old, new)):
        return False
    if all(map(measure, old.words)) != all(map(measure, new.words)):
        return False
    relating = (*sorted({*found.shared, *(OPEN & set(older.words))}), new.relation)
    return Values(relating, old.words, new.words, _says_how(old, new, older, newer)).excludes(newer.is_marked)


@lru_cache(maxsize=STATEMENTS)
def _subject(statement: Statement) -> frozenset[str]:
    """The words before the first relation of a statement."""
    slots = slots_of(statement.words)
    return frozenset(slots[0].words) if slots and slots[0].relation == HEAD else frozenset()


def _says_how(old: Slot, new: Slot, older: Statement, newer: Statement) -> bool:
    """Whether a value says how something is rather than what it is; one that has a number says what."""
    if any(map(measure, (*old.words, *new.words))):
        return False
    plain = {stem(word): word for statement in (older, newer) for word in statement.plain}
    names = older.names | newer.names
    if old.relation == "be":
        is_doing = any(
            before in IS and GERUND.fullmatch(word) for before, word in zip(newer.raw, newer.raw[1:], strict=False)
        )
        return is_doing or not {plain[old.words[0]], plain[new.words[0]]} <= names
    words = [plain[word] for word in (*old.words, *new.words)]
    qualities = QUALITIES | PARTICIPLES | older.qualities | newer.qualities
    return any(
        word not in names and (word in qualities or bool(PARTICIPLE.fullmatch(word) or GERUND.fullmatch(word)))
        for word in words
    )


def _is_other_agent(newer: Statement, old: Sequence[Slot], new: Sequence[Slot]) -> bool:
    """`Leif maintains the scripts`, and `the scripts are maintained by Sunniva`."""
    if len(old) != 1 or len(new) != 1 or old[0].relation != HEAD or new[0].relation != "by":
        return False
    return len(old[0].words) == len(new[0].words) == 1 and new[0].words[0] in newer.names and bool(IS & set(newer.raw))


def _denies(older: Statement, newer: Statement) -> bool:
    """One denies what the other says, or that it still holds; one that denies more speaks of an exception."""
    if ends(older, newer) or ends(newer, older):
        return True
    if older.is_denied == newer.is_denied:
        return False
    denied, said = (older, newer) if older.is_denied else (newer, older)
    if is_brief(denied) and not denied.has_ended:
        return False
    if denied.raw[0] in ("no", "not", "never") and said.raw[0] != denied.raw[1]:
        return False
    if denied.contents == said.contents:
        return bool(said.contents)
    if len(denied.contents & said.contents) < 2:
        return False
    return denied.contents < said.contents


def _turns(older: Statement, newer: Statement) -> bool:
    """The newer says by its verb that its subject has another value: `moved to`, `was raised to`."""
    turn = _turn(newer)
    if turn is None or not turn.about <= older.contents or older.contents.issuperset(turn.value):
        return False
    about, is_turn = turn.about, turn.verb in TURNS
    if _measures(turn.value):
        sorts = {measure(word) for word in turn.value} & {measure(word) for word in older.contents - about}
        return (is_turn or turn.relation in ("to", "until")) and bool(sorts - {None})
    if not is_turn or turn.relation == "until" or not about & _subject(older):
        return False
    values = [slot for slot in slots_of(older.words) if slot.relation in AT and not about & set(slot.words)]
    is_valued = bool(values) and not older.contents & OPEN and not _measures(values[-1].words)
    return is_valued or bool(OWNS & set(older.words))


class _Turn(NamedTuple):
    """How a statement says that something is otherwise: the verb, what it is about, and the new value."""

    verb: str
    relation: str
    about: frozenset[str]
    value: Sequence[str]


@lru_cache(maxsize=STATEMENTS)
def _turn(statement: Statement) -> _Turn | None:
    words, plain = statement.words, statement.plain
    place = next((number for number, word in enumerate(plain) if _is_past(word)), None)
    if place is None or "may" in words:
        return None
    target = next((number for number in range(place, len(words)) if words[number] in TARGETS), None)
    if target is None or target == len(words) - 1 or "and" in words[place:target]:
        return None
    about = contents((*plain[:place], *plain[place + 1 : target])) - AUXILIARIES
    end = next((n for n in range(target + 1, len(words)) if words[n] in ENDS), len(words))
    value = [word for word in words[target + 1 : end] if is_content(word)]
    return _Turn(words[place], words[target], about, value) if about and value else None


def _is_past(word: str) -> bool:
    """Whether it may be the past form of a verb that says that something is otherwise than before."""
    return word.endswith("ed") or word in ("cut", "set", "rewritten", "rewrote")


def _has_another_value(older: Statement, newer: Statement) -> bool:
    """Both say the same of the same thing but for one value of those that exclude each other."""
    return any(
        value.excludes(newer.is_marked)
        for one in _ends(older.words)
        for other in _ends(newer.words)
        for value in _values(older, newer, one, other)
    )


@lru_cache(maxsize=STATEMENTS)
def _ends(words: tuple[str, ...]) -> Sequence[int]:
    """Where a sentence may be taken to end: at its end, and before what says since when or why."""
    return [len(words), *(place for place, word in enumerate(words) if place and word in CUTS)]


@dataclass(frozen=True)
class Values:
    """Two values in the place of one, as stems, and the words before them."""

    before: tuple[str, ...]
    x: tuple[str, ...]
    y: tuple[str, ...]
    are_qualities: bool
    """Whether one says how something is, of which several hold at once, rather than what it is."""

    def excludes(self, is_marked: bool) -> bool:
        """Whether a thing has one such value at a time. `is_marked`: one says that something has changed."""
        x, y, before = self.x, self.y, self.before
        if is_marked and min(len(x), len(y)) > 2 and x[1] == y[1] and x[1] in AT:  # `runs at`, `starts at`
            before, x, y = (*before, x[1]), x[2:], y[2:]
        if not x or not y or set(x) & set(y) or OCCASIONS & {*before, *x, *y}:
            return False
        relation = before[-1]
        if {*x, *y} <= SCENES or (relation == "to" and not TOWARDS & set(before) and not _measures(x)):
            return False
        if len(x) == len(y) == 1 and ((x[0], y[0]) in OPPOSITES or (y[0], x[0]) in OPPOSITES):
            return True
        if _is_restricted(x, relation) != _is_restricted(y, relation):
            return False
        if (_measures(x) or _measures(y)) and relation not in ("with", "as"):
            is_time = relation == "at" and _measures(x) | _measures(y) <= TIMES
            return (is_time or _measures(x) == _measures(y)) and _is_same_unit(x, y)
        if OPEN & set(before) or self.are_qualities:
            return False
        if (x[0] in PLACES) != (y[0] in PLACES):
            return False
        if relation == "prefer" and not is_marked and len(x) != len(y):
            return False
        if is_marked:
            return relation in AT or sum(map(is_content, before)) > 1 or {x[0], y[0]} <= STATES | AT
        return relation in AT and x[0] not in PLACES


def _values(older: Statement, newer: Statement, one: int, other: int) -> Iterator[Values]:
    """The places where both differ: as the words stand, and where the same words in another order precede."""
    a, b = older.words[:one], newer.words[:other]
    before = _alike(a, b)
    after = _alike(a[before:][::-1], b[before:][::-1])
    frame = (*a[:before], *a[len(a) - after :])
    x, y = a[before : len(a) - after], b[before : len(b) - after]
    if before and any(is_content(word) and word not in QUALITIES for word in frame):
        are_qualities = any(
            _is_quality(statement, before, end - after) for statement, end in ((older, one), (newer, other))
        )
        yield Values(a[:before], x, y, are_qualities)
    elif x and y and max(len(x), len(y)) <= 3 and _is_of_one(frame):
        yield Values(("be",), x, y, False)
    for first, head in _heads(a):
        for second, other_head in _heads(b):
            if head != other_head or a[:first] == b[:second]:
                continue
            if a[first - 1] == b[second - 1] or (measure(a[first]) and measure(b[second])):
                rest = _alike(a[first:][::-1], b[second:][::-1])
                yield Values(a[:first], a[first : one - rest], b[second : other - rest], False)


def _is_quality(statement: Statement, start: int, end: int) -> bool:
    """Whether these words say how something is: `nice and quiet`, `in good order`, `sent over HTTPS`."""
    value, before = statement.plain[start:end], statement.words[:start]
    if not value:
        return False
    first, last = value[0], value[-1]
    if first not in statement.names and (GERUND.fullmatch(first) or (len(value) > 1 and value[1] in OF)):
        return True
    if before[-1] == "be" and first.endswith("ing") and first not in statement.names:
        return True
    if first not in statement.names and (first in QUALITIES | PARTICIPLES or PARTICIPLE.fullmatch(first)):
        return True
    if before[-1] != "be" or last in statement.names:
        return False
    is_bare = len(value) == 1 and first in statement.qualities and not PROPERTIES & set(before)
    return last in QUALITIES or (len(last) > 4 and last.endswith(QUALITY_ENDINGS)) or is_bare


def _is_of_one(frame: Sequence[str]) -> bool:
    """Whether what follows a subject can be said of one only: `owns …`, `is responsible for …`."""
    return bool(frame) and (frame[0] in OWNS or (frame[0] == "be" and bool(SOLE & set(frame[1:3]))))


@lru_cache(maxsize=STATEMENTS)
def _heads(words: tuple[str, ...]) -> Sequence[tuple[int, frozenset[str]]]:
    """Where a value may begin, after a preposition or at a number, and what precedes it."""
    places = [place for place in range(1, len(words)) if words[place - 1] in PLACES or measure(words[place])]
    found = [(place, frozenset(filter(is_content, words[:place]))) for place in places]
    return [(place, head) for place, head in found if len(head) > 1]


def _is_same_unit(x: Sequence[str], y: Sequence[str]) -> bool:
    first, second = ({word for word in words if not measure(word) and word != "tim"} for words in (x, y))
    return first == second or first | second <= UNITS


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both begin with."""
    for place, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return place
    return min(len(a), len(b))


def _measures(words: Sequence[str]) -> frozenset[str]:
    """The sorts of values among the words; a frequency or a span of time counts as one whatever its words."""
    found = {sort for word in words if (sort := measure(word))}
    return frozenset(next(({sort} for sort in ("frequency", "span") if sort in found), found))


def _is_restricted(value: Sequence[str], relation: str) -> bool:
    """Whether it holds at some times or places only, as `home on Fridays`. `As integers in cents` does not."""
    return any(word in RESTRICTS and (word, relation) != ("in", "as") for word in value[1:])
