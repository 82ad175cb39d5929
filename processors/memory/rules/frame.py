"""The frame of a statement: what it is about, its verb, and the phrases that say something of it.

`The mail server is hosted in Oslo for now` is about the mail server; verb `host`; phrase `in Oslo`. Words are stems.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from processors.memory.rules.statement import BE, STATEMENTS, Statement, is_content, measure, stem
from processors.memory.rules.verbs import ALIKE_VERBS, BEGIN, END, MODALS, VERBS
from processors.memory.rules.vocabulary import PARTICIPLES
from processors.memory.rules.words import word_set

OBJECT = "obj"
"""The relation of what follows the verb without a preposition."""
_RELATIONS = word_set(
    "in on at with by as to under over through via into onto from until after before for of off per about without than "
    "within"
)
_SAME = {
    "through": "with",
    "via": "with",
    "over": "with",
    "into": "in",
    "onto": "in",
    "within": "in",
    "on": "in",
    "at": "in",
    "under": "in",
    "off": "in",
    "as": OBJECT,
}
"""What relates a value alike: `goes through X` and `sent with X`, `is on X` and `is at X`."""
_PARTICLES = word_set(
    "up down out off back only mostly now then again also still mainly currently internally officially not no longer "
    "more instead new"
)
_SPEAKERS = word_set("we i you please user")
"""Whose statement is about the object of its verb: `we build the site with Make`."""
_REASONS = word_set("since because which while although though that")
_OPENINGS = (_RELATIONS | {"since"}) - {"to", "without"}
_SUBJECT_STARTS = word_set("the we our i a an user")
_BEFORE_NOUNS = word_set("the a an 's my our of for new your their")
_IS_NO_SUBJECT = word_set("'s us say said mention note update updat decision decid thing new old set lot")


FAMILY_CHARACTERS = 4
"""Stems of one family have this many characters in common."""


class Phrase(NamedTuple):
    relation: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Frame:
    """What a statement says of what. `all_words`: also its verb and what stands in no phrase."""

    head: frozenset[str]
    verb: str
    phrases: tuple[Phrase, ...]
    words: frozenset[str]
    all_words: frozenset[str]
    has_article: bool
    """Whether what follows the verb has one: `is a nurse`, unlike `is vegan`."""


@lru_cache(maxsize=STATEMENTS)
def frame_of(statement: Statement) -> Frame:
    """The frame of a statement that says what holds."""
    words = [
        word
        for word in _with_opening_last(_without_reason(statement.raw))
        if word not in _PARTICLES and word != "please"
    ]
    place = verb_place(words, statement.names)
    before, rest = words[:place], words[place:]
    while (
        len(rest) > 1
        and (rest[0] in BE | MODALS or rest[:2] == ["to", "be"])
        and (rest[1] in BE | MODALS or rest[1:3] == ["to", "be"] or _is_participle(rest[1]))
    ):
        rest = rest[1:]
    verb = stem(rest[0]) if rest else ""
    phrases = _phrases(rest, verb)
    if phrases and phrases[0].words[0] == verb:
        verb = "be"
    head = frozenset(one for one in map(stem, before) if is_content(one) and one not in _IS_NO_SUBJECT)
    if all(word in _SPEAKERS for word in before) and len(phrases) > 1 and phrases[0].relation == OBJECT:
        head, phrases = head | frozenset(phrases[0].words), phrases[1:]
    content = head.union(*(phrase.words for phrase in phrases))
    article = bool({"a", "an"} & set(rest[1:3])) or rest[1:2] == ["the"]
    return Frame(head, verb, phrases, content, content | set(statement.words) | {verb}, article)


def _phrases(rest: Sequence[str], verb: str) -> tuple[Phrase, ...]:
    found: list[tuple[str, list[str]]] = [(OBJECT, [])]
    if rest and rest[0].endswith("ed") and verb not in VERBS and (len(rest) == 1 or rest[1] not in _RELATIONS):
        found[0][1].append(verb)  # `is single-threaded`
    for word in rest[1:]:
        if word in _RELATIONS:
            found.append((_SAME.get(word, word), []))
        elif word != "'s" and is_content(one := stem(word)):
            found[-1][1].append(one)
    return tuple(Phrase(relation, tuple(words)) for relation, words in found if words)


def _without_reason(words: Sequence[str]) -> list[str]:
    """The words before what says since when, why or while what."""
    end = next((place for place, word in enumerate(words) if place > 2 and word in _REASONS), len(words))
    return [*words[:end], *(word for word in words[end:] if measure(word) == "frequency")]


def _with_opening_last(words: list[str]) -> list[str]:
    """`The tool prints tables by default` for `by default the tool prints tables`."""
    if not words or words[0] not in _OPENINGS:
        return words
    place = next((place for place, word in enumerate(words) if place > 1 and word in _SUBJECT_STARTS), 0)
    return [*words[place:], *words[:place]]


def verb_place(words: Sequence[str], names: Collection[str]) -> int:
    """Where the verb stands that says something of the subject; the number of words where there is none."""
    for place, word in enumerate(words):
        if word in BE or (word in MODALS and place):
            return place
        if stem(word) in VERBS and word not in names and _says_something(words, place):
            return place
    for place in range(1, len(words) - 1):
        word = words[place]
        is_ending = word.endswith("ed") or (word.endswith("s") and not word.endswith(("ss", "us", "is", "'s")))
        if is_ending and word not in names and words[place - 1] not in _BEFORE_NOUNS:
            return place
    return len(words)


def _says_something(words: Sequence[str], place: int) -> bool:
    """Whether a word that may be a verb is one here, rather than a noun: `bug reports are read`."""
    after = words[place + 1] if place + 1 < len(words) else ""
    if place == 0:
        return (
            bool(after) and after not in BE | MODALS | {"of", "may"} and not words[0].endswith(("ing", "ion", "ment"))
        )
    if words[place - 1] in _BEFORE_NOUNS or after in BE | {"of"} or words[place].endswith("ing"):
        return False
    is_before_phrase = after in _RELATIONS or after in ("the", "a", "an", "that")
    return is_before_phrase or not BE & set(words[place + 1 : place + 4])


def _is_participle(word: str) -> bool:
    return word.endswith("ed") or stem(word) in VERBS or word.removeprefix("re") in PARTICIPLES


@lru_cache(maxsize=16384)
def akin(one: str, other: str) -> bool:
    """Whether two stems are of one family: `licens` and `relicens`."""
    if one == other:
        return True
    if not (one.isalpha() and other.isalpha()):
        return False
    one, other = one.removeprefix("re"), other.removeprefix("re")
    short = min(len(one), len(other))
    return short >= FAMILY_CHARACTERS and one[:short] == other[:short] and abs(len(one) - len(other)) <= 4


def verbs_alike(one: str, other: str) -> bool:
    """Whether two verbs say the same of a thing: `store` and `keep`."""
    return akin(one, other) or any(one in some and other in some for some in ALIKE_VERBS)


def are_both_ends(one: str, other: str) -> bool:
    """Whether one says when a thing begins, the other when it is over."""
    return (one in BEGIN and other in END) or (one in END and other in BEGIN)


def without(some: Collection[str], others: Collection[str]) -> frozenset[str]:
    """Those of the stems that are akin to none of the others."""
    beginnings = {_beginning(other) for other in others}
    return frozenset(
        one
        for one in some
        if one not in others and not (_beginning(one) in beginnings and any(akin(one, other) for other in others))
    )


@lru_cache(maxsize=8192)
def _beginning(word: str) -> str:
    """What stems of one family begin with."""
    return word.removeprefix("re")[:FAMILY_CHARACTERS]
