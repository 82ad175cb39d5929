"""Whether of two statements about the same thing one changes what the other says.

Both are sentences in plain English, as people and agents write them. A change is recognised where one of these holds:
both say the same of the same thing but for one value; the newer names what was given up (`from A to B`, `instead of
A`); it says by its verb that a thing has gone elsewhere (`moved to`, `was rewritten in`); one denies what the other
says. Additions, other aspects, other things, plans, questions and comparisons are not changes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from processors.memory.rules.statement import Statement, is_content, measure, statements_of, stem, word_set

_TURNS = word_set(
    "switch migrat mov chang upgrad port convert transition renam rewritten rewrit rewrot rais lower increas reduc cut "
    "set updat downgrad relocat extend shorten transferr postpon delay adjust bump"
)
"""Verbs that say by themselves that something is otherwise than before, as stems."""
_STATES = word_set(
    "be liv run work use written host stor kept keep go listen call sit hang stand belong stay deploy built buil bas"
)
"""Verbs after which a thing can have one value at a time."""
_AT = word_set("in on at with by as to under over through via into from be call nam prefer liv use")
"""What stands before a value that excludes others."""
_PLACES = _AT - word_set("be us use call nam prefer liv")
_OWNS = word_set("own maintain lead chair manag head")
"""What one does alone."""
_OPEN = word_set("has have contain includ need about against like know support find play eat read")
"""What can be said of several values at once."""
_OCCASIONS = word_set("found scored took went had made someth anyth")
"""What is told of an occasion, which the next one does not change, and what names no value."""
_SOLE = word_set("responsibl charg current")
"""What of several only one is."""
_PARTICIPLES = word_set(
    "sent written built kept made done run set put known seen taken given bought sold brought left found"
)
_UNITS = word_set("kb mb gb tb ms s min percent eur usd chf euro dollar franc pound cent km m cm kg g hz mhz ghz")
_OPPOSITES = (
    ("open", "clos"),
    ("public", "privat"),
    ("on", "off"),
    ("enabl", "disabl"),
    ("allow", "forbidden"),
    ("allow", "prohibit"),
    ("requir", "optional"),
    ("mandator", "optional"),
    ("full", "empt"),
    ("activ", "inactiv"),
    ("valid", "invalid"),
    ("visibl", "hidden"),
    ("manual", "automatic"),
    ("synchronous", "asynchronous"),
    ("start", "stopp"),
    ("alive", "dead"),
    ("up", "down"),
)
_CUTS = word_set("sinc becaus after due")
_RESTRICTS = word_set("for on in at if when")
_QUALITIES = word_set(
    "good bad great nice fast slow quick hot cold easy hard big small large long short new old cheap simple safe"
)
_PARTICIPLE = re.compile(r"\w{3,}ed")
_PROPERTIES = word_set(
    "branch colour color nam languag format level mod status stat default favourit favorit them typ unit engin encod "
    "currenc"
)
"""Of what is named so a word without an article is the value, as stems."""
_QUALITY_ENDINGS = ("ful", "ive", "ous", "able", "ible", "less", "ish", "ic", "ing", "y")
_AS_GIVEN_UP = (("instead", "of"), ("rather", "than"), ("in", "place", "of"))
_TAKING = word_set("took inherited")
_LEAVING = word_set("left quit stopped dropped abandoned removed deleted retired")


def changes(older: str, newer: str) -> bool:
    """Whether a sentence of the newer text changes what a sentence of the older one says."""
    return any(_revises(one, other) or _denies(one, other) for one, other in _pairs(older, newer))


def revises(older: str, newer: str) -> bool:
    """Whether a sentence of the newer text gives another value for what a sentence of the older one says."""
    return any(_revises(one, other) for one, other in _pairs(older, newer))


def _pairs(older: str, newer: str) -> Iterator[tuple[Statement, Statement]]:
    """Sentences of both that may be about the same thing. One that both texts have changes nothing."""
    for other in statements_of(newer):
        for one in statements_of(older):
            if one.contents & other.contents and one.text not in newer and other.text not in older:
                yield one, other


def _revises(older: Statement, newer: Statement) -> bool:
    if _gives_up(older, newer):
        return True
    return not newer.is_denied and not older.is_denied and (_turns(older, newer) or _has_another_value(older, newer))


def _denies(older: Statement, newer: Statement) -> bool:
    """One denies what the other says.

    One that denies more than that speaks of an exception, unless it says that something has ended.
    """
    if older.is_denied == newer.is_denied:
        return False
    denied, said = (older, newer) if older.is_denied else (newer, older)
    if denied.contents == said.contents:
        return bool(said.contents)
    if len(denied.contents & said.contents) < 2:
        return False
    return denied.contents < said.contents or (denied.has_ended and said.contents < denied.contents)


def _gives_up(older: Statement, newer: Statement) -> bool:
    """The newer names what the older says as what was given up, and speaks of the same thing besides."""
    if older.is_denied:
        return False
    for given_up in _given_up(newer):
        if given_up and given_up <= older.contents:
            is_value = given_up == _contents_after_relation(older.words)
            if (older.contents & newer.contents) - given_up or (is_value and "replaced" in newer.raw):
                return True
    return False


def _contents_after_relation(words: Sequence[str]) -> frozenset[str]:
    """What stands at the end, after the last word that gives a thing its value."""
    last = max((place for place, word in enumerate(words) if word in _AT), default=len(words))
    return frozenset(word for word in words[last + 1 :] if is_content(word))


def _given_up(statement: Statement) -> list[frozenset[str]]:
    words = statement.raw
    found: list[frozenset[str]] = []
    for place, word in enumerate(words):
        if any(words[place : place + len(phrase)] == phrase for phrase in _AS_GIVEN_UP):
            found.append(_object(words, place + (3 if word == "in" else 2)))
        elif word in _LEAVING:
            found.append(_object(words, place + 1))
            found.append(_named_before(words, place))
        elif word == "from" and "to" in words[place:] and any(stem(one) in _TURNS for one in words):
            found.append(_contents(words[place + 1 : words.index("to", place)]))
        elif word == "from" and _TAKING & set(words):
            found.append(_object(words, place + 1))
        elif word == "replaced":
            is_passive = place > 0 and stem(words[place - 1]) == "be"
            found.append(_named_before(words, place) if is_passive else _object(words, place + 1))
    return found


def _object(words: Sequence[str], start: int) -> frozenset[str]:
    """The contents of the phrase that begins there, to the next preposition, `and` or end."""
    end = start
    while end < len(words) and words[end] not in _AT | _RESTRICTS | _CUTS and words[end] not in ("and", "or", "but"):
        end += 1
    return _contents(words[start:end])


def _named_before(words: Sequence[str], end: int) -> frozenset[str]:
    """The contents of the phrase that a passive verb at this place is about: `PDF was dropped`."""
    if end == 0 or stem(words[end - 1]) != "be":
        return frozenset()
    start = end - 1
    while start > 0 and start > end - 4 and words[start - 1] not in _AT and words[start - 1] not in ("and", "but"):
        start -= 1
    return _contents(words[start : end - 1])


def _contents(words: Sequence[str]) -> frozenset[str]:
    return frozenset(one for one in map(stem, words) if is_content(one))


def _turns(older: Statement, newer: Statement) -> bool:
    """The newer says by its verb that its subject has another value: `moved to`, `was raised to`."""
    words = newer.words
    if "may" in words:
        return False
    place = next((number for number, word in enumerate(words) if word in _TURNS), None)
    if place is None:
        return False
    target = next((number for number in range(place, len(words)) if words[number] in ("to", "in", "into")), None)
    if target is None or target == len(words) - 1:
        return False
    about = [word for word in (*words[:place], *words[place + 1 : target]) if is_content(word)]
    new = {word for word in words[target + 1 :] if is_content(word)}
    stated = [word for word in older.words if is_content(word) or word in ("be", "use")]
    states = [number for number, word in enumerate(stated) if word in _STATES]
    if not about or not states or new <= older.contents:
        return False
    subject = set(stated[: states[0]])
    return bool(subject) and (set(about) <= subject or subject <= set(about)) and not older.contents & _OPEN


def _has_another_value(older: Statement, newer: Statement) -> bool:
    """Both say the same of the same thing but for one value of those that exclude each other."""
    return any(
        value.excludes(newer.is_marked)
        for one in _ends(older.words)
        for other in _ends(newer.words)
        for value in _values(older, newer, one, other)
    )


def _ends(words: Sequence[str]) -> list[int]:
    """Where a sentence may be taken to end: at its end, and before what says since when or why."""
    return [len(words), *(place for place, word in enumerate(words) if place and word in _CUTS)]


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
        if is_marked and min(len(x), len(y)) > 2 and x[1] == y[1] and x[1] in _AT:  # `runs at`, `starts at`
            before, x, y = (*before, x[1]), x[2:], y[2:]
        if not x or not y or set(x) & set(y) or _OCCASIONS & {*before, *x, *y}:
            return False
        relation = before[-1]
        if len(x) == len(y) == 1 and ((x[0], y[0]) in _OPPOSITES or (y[0], x[0]) in _OPPOSITES):
            return True
        if _is_restricted(x, relation) != _is_restricted(y, relation):
            return False
        if (_measures(x) or _measures(y)) and relation not in ("with", "as"):
            return _measures(x) == _measures(y) and _is_same_unit(x, y)
        if _OPEN & set(before) or self.are_qualities:
            return False
        if (x[0] in _PLACES) != (y[0] in _PLACES):
            return False
        if is_marked:
            return relation in _AT or sum(map(is_content, before)) > 1 or {x[0], y[0]} <= _STATES | _AT
        return relation in _AT and x[0] not in _PLACES


def _values(older: Statement, newer: Statement, one: int, other: int) -> Iterator[Values]:
    """The places where both differ: as the words stand, and where the same words in another order precede."""
    a, b = older.words[:one], newer.words[:other]
    before = _alike(a, b)
    after = _alike(a[before:][::-1], b[before:][::-1])
    frame = (*a[:before], *a[len(a) - after :])
    x, y = a[before : len(a) - after], b[before : len(b) - after]
    if before and any(is_content(word) and word not in _QUALITIES for word in frame):
        are_qualities = any(
            _is_quality(statement, before, end - after) for statement, end in ((older, one), (newer, other))
        )
        yield Values(a[:before], x, y, are_qualities)
    elif x and y and max(len(x), len(y)) <= 3 and _is_of_one(frame):
        yield Values(("be",), x, y, False)
    for first in _places(a):
        for second in _places(b):
            one_head, other_head = (frozenset(filter(is_content, words)) for words in (a[:first], b[:second]))
            is_related = a[first - 1] == b[second - 1] or (measure(a[first]) and measure(b[second]))
            if is_related and one_head == other_head and len(one_head) > 1 and a[:first] != b[:second]:
                rest = _alike(a[first:][::-1], b[second:][::-1])
                yield Values(a[:first], a[first : one - rest], b[second : other - rest], False)


def _is_quality(statement: Statement, start: int, end: int) -> bool:
    """Whether these words say how something is: `nice and quiet`, `in good order`, `sent over HTTPS`."""
    value, before = statement.plain[start:end], statement.words[:start]
    if not value:
        return False
    first, last = value[0], value[-1]
    if before[-1] == "be" and first.endswith("ing") and first not in statement.names:
        return True
    if first not in statement.names and (first in _QUALITIES | _PARTICIPLES or _PARTICIPLE.fullmatch(first)):
        return True
    if before[-1] != "be" or last in statement.names:
        return False
    is_bare = len(value) == 1 and first in statement.qualities and not _PROPERTIES & set(before)
    return last in _QUALITIES or (len(last) > 4 and last.endswith(_QUALITY_ENDINGS)) or is_bare


def _is_of_one(frame: Sequence[str]) -> bool:
    """Whether what follows a subject can be said of one only: `owns …`, `is responsible for …`."""
    return bool(frame) and (frame[0] in _OWNS or (frame[0] == "be" and bool(_SOLE & set(frame[1:3]))))


def _places(words: Sequence[str]) -> list[int]:
    """Where a value may begin: after a preposition, and at a number."""
    return [place for place in range(1, len(words)) if words[place - 1] in _PLACES or measure(words[place])]


def _is_same_unit(x: Sequence[str], y: Sequence[str]) -> bool:
    first, second = ({word for word in words if not measure(word) and word not in _UNITS} for words in (x, y))
    return not first or not second or first == second


def _alike(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both begin with."""
    length = min(len(a), len(b))
    return next((place for place in range(length) if a[place] != b[place]), length)


def _measures(words: Sequence[str]) -> frozenset[str]:
    """The sorts of values among the words; a frequency or a span of time counts as one whatever its words."""
    found = {sort for word in words if (sort := measure(word))}
    return frozenset(next(({sort} for sort in ("frequency", "span") if sort in found), found))


def _is_restricted(value: Sequence[str], relation: str) -> bool:
    """Whether it holds at some times or places only, as `home on Fridays`. `As integers in cents` does not."""
    return any(word in _RESTRICTS and (word, relation) != ("in", "as") for word in value[1:])
