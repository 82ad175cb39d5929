"""Whether the newer of two statements gives another value for the same property of the same thing.

Both are compared by their frames, in any order of words. The subject must be the same: the newer may not be about
anything that the older does not name. Then one of these holds: the newer says by a word or verb that it was otherwise
before; the values are amounts of one unit; they stand in the same relation after verbs that say the same, and one
excludes the other; they are opposites; what the older says is told to have ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from processors.memory.rules.frame import OBJECT, Frame, Phrase, akin, are_both_ends, frame_of, verbs_alike, without
from processors.memory.rules.occasion import is_brief, is_doing, is_talk, is_told
from processors.memory.rules.statement import BE, Statement, is_content, measure, stem
from processors.memory.rules.verbs import (
    ENDING_STEMS,
    ENDINGS,
    GOALS,
    IRREGULAR,
    LIGHT,
    NEW_VERBS,
    ONE_OBJECT,
    OPEN_VERBS,
)
from processors.memory.rules.vocabulary import (
    CONTRARIES,
    EVERYBODY,
    NAMED_BY_VALUE,
    NEWER_THAN,
    OPEN,
    PROPERTIES,
    QUALITIES,
    QUALITY,
    SAYS_LITTLE,
)
from processors.memory.rules.words import word_set

MOST_WORDS = 6
"""What differs in more words is another matter."""
CASE = frozenset(("for", "if", "when", "during", "per", "about", "without", "before", "after"))
"""Relations of what is said of some cases alone."""
_INTERCHANGED = (
    frozenset((OBJECT, "in")),
    frozenset((OBJECT, "with")),
    frozenset((OBJECT, "from")),
    frozenset((OBJECT, "by")),
    frozenset((OBJECT, "to")),
    frozenset(("to", "in")),
)
"""Relations in which verbs that say the same may put the same value: `uses X`, `runs with X`."""
_PERFECT = BE | {"has", "have", "now"}
_SOMEBODY = word_set("his her their its he she they you your whose")
"""What stands for one that another sentence named."""


def replaces(older: Statement, newer: Statement) -> bool:
    """Whether the newer gives another value for what the older says."""
    a, b = frame_of(older), frame_of(newer)
    if not a.words & b.all_words or (a.head - b.all_words and b.head - a.all_words and a.verb != b.verb):
        return False
    if len(a.words - b.all_words) > MOST_WORDS or len(b.words - a.all_words) > MOST_WORDS:
        return False
    if (
        newer.is_denied
        or older.is_denied
        or _SOMEBODY & {older.raw[0], newer.raw[0]}
        or is_talk(newer)
        or is_talk(older)
        or (is_brief(newer) and not newer.is_marked)
    ):
        return False
    return Comparison(older, newer, a, b).is_replaced


@dataclass(frozen=True)
class Comparison:
    """Two statements, and what each says that the other does not."""

    older: Statement
    newer: Statement
    a: Frame
    b: Frame

    @property
    def is_replaced(self) -> bool:
        if self._has_ended or self._is_reserved or self._has_other_holder:
            return True
        if not (self.left and self.added) and not self._is_opposed_by_verb:
            return False
        if not self._is_about_the_same:
            return False
        if are_both_ends(self.a.verb, self.b.verb) and self._are_measured:
            return False
        if self._is_opposed or self._has_other_means:
            return True
        if self.head_added or not self._may_lack_head or self._differs_twice or self._is_doing:
            return False
        if {phrase.relation for phrase in self._only_new} & CASE:
            return False
        return self._is_marked or self._is_turned or self._is_other_amount or self._is_other_value

    @cached_property
    def left(self) -> frozenset[str]:
        """What only the older says."""
        return without(self.a.words, self.b.all_words) - SAYS_LITTLE - (NEW_VERBS - self.a.head - {"hand"})

    @cached_property
    def added(self) -> frozenset[str]:
        """What only the newer says."""
        return without(self.b.words, self.a.all_words) - SAYS_LITTLE - (NEW_VERBS - self.b.head)

    @cached_property
    def head_left(self) -> frozenset[str]:
        return self.left & self.a.head - NAMED_BY_VALUE

    @cached_property
    def head_added(self) -> frozenset[str]:
        """What only the newer is about; `filling in the form` is about the form."""
        found = self.added & self.b.head - NAMED_BY_VALUE
        first = self.newer.raw[0]
        is_gerund = first.endswith("ing") and found == {stem(first)} and BE & set(self.newer.raw)
        return frozenset() if is_gerund else found

    @cached_property
    def shared(self) -> frozenset[str]:
        return self.a.words - self.left

    @cached_property
    def topic(self) -> frozenset[str]:
        return self.shared & (self.a.head | self.b.head)

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(map(stem, self.older.names | self.newer.names))

    @cached_property
    def old(self) -> list[Phrase]:
        """The phrases of the older that differ, without what both say."""
        return _parts(self.a, self.left)

    @cached_property
    def new(self) -> list[Phrase]:
        return _parts(self.b, self.added)

    @cached_property
    def _only_new(self) -> list[Phrase]:
        """Phrases in relations in which nothing of the older differs."""
        return _unpaired(self.b, self.added, self.old, self.pair)

    @cached_property
    def _only_old(self) -> list[Phrase]:
        return _unpaired(self.a, self.left, self.new, self.pair)

    @cached_property
    def pair(self) -> frozenset[str]:
        """The relations of two values that stand in each other's place; empty: there are none."""
        relations = [phrase.relation for phrase in self.new]
        same = next((phrase.relation for phrase in self.old if phrase.relation in relations), None)
        if same is not None:
            return frozenset((same,))
        if not (self._is_same_verb or self._are_light or (any(self._lights) and self._are_measured)):
            return frozenset()
        found = (frozenset((phrase.relation, other)) for phrase in self.old for other in relations)
        return next((each for each in found if each in _INTERCHANGED), frozenset())

    @cached_property
    def _is_same_verb(self) -> bool:
        a, b = self.a, self.b
        is_named = (a.verb != "be" and a.verb in b.all_words) or (b.verb != "be" and b.verb in a.all_words)
        return is_named or verbs_alike(a.verb, b.verb)

    @cached_property
    def _lights(self) -> tuple[bool, bool]:
        return _is_light(self.a.verb), _is_light(self.b.verb)

    @property
    def _are_light(self) -> bool:
        return all(self._lights)

    @property
    def _are_measured(self) -> bool:
        return bool(_sorts(self.left)) and bool(_sorts(self.added))

    @cached_property
    def _units(self) -> frozenset[str]:
        """The units, or what is counted, that both have beside a number."""
        return _beside_number(self.older) & _beside_number(self.newer)

    @cached_property
    def _is_told(self) -> bool:
        return is_told(self.older) or is_told(self.newer)

    @property
    def _is_about_the_same(self) -> bool:
        if self.topic:
            return True
        return not (self.a.head or (self.b.head and not self.head_added)) and bool(self.shared)

    @property
    def _may_lack_head(self) -> bool:
        """Whether the newer may leave out what only the head of the older says."""
        if not self.head_left or (self._are_measured and self._units):
            return True
        return self._says_newness or self._has_new_verb

    @property
    def _differs_twice(self) -> bool:
        return min(len(self.old), len(self.new)) > 1

    @property
    def _is_doing(self) -> bool:
        """`Jon is working on a book`: what somebody does at a time."""
        return is_doing(self.older) or is_doing(self.newer)

    @cached_property
    def _says_newness(self) -> bool:
        """Whether a word of the newer says that it was otherwise before."""
        raw, before = self.newer.raw, set(self.older.raw)
        if NEWER_THAN & set(raw) - before:
            return True
        is_of_new = "new" in raw and ("new" not in raw[:3] or bool({"new", "old"} & before))
        return self.newer.is_marked and not is_of_new

    @cached_property
    def _has_new_verb(self) -> bool:
        return any(
            ((word.endswith("ed") or word in IRREGULAR) and stem(word) in NEW_VERBS) or self._is_redone(word)
            for word in self.newer.raw
        )

    def _is_redone(self, word: str) -> bool:
        """`relicensed`, of what was licensed."""
        again = stem(word).removeprefix("re")
        return len(word) > 6 and word.startswith("re") and again in self.older.words

    @property
    def _is_specific(self) -> bool:
        """Whether both share more than somebody's or something's name, or say it with the same verb."""
        return len(self.shared) > 1 or self._is_same_verb or (self._are_measured and self._are_light)

    @property
    def _is_marked(self) -> bool:
        if not self._says_newness or self._is_told or not self._is_specific:
            return False
        if len(self.shared) == 1 and not self._are_measured:
            return bool(self.pair) and not self._only_new
        return bool(self.pair) or self._are_measured or (len(self.shared) > 1 and self.a.head == self.b.head)

    @property
    def _is_turned(self) -> bool:
        if not self._has_new_verb or "may" in self.newer.raw or (self.a.verb in OPEN_VERBS and not self._are_measured):
            return False
        has_goal = self.b.verb in NEW_VERBS and bool(self.old) and any(p.relation == "to" for p in self.new)
        return has_goal or ((bool(self.pair) or self._are_measured) and self._is_specific)

    @property
    def _is_other_amount(self) -> bool:
        """Amounts of one unit, and nothing else differs."""
        same = _sorts(self.left) & _sorts(self.added)
        if not same or self._is_other_case or len(self.left) > 4:
            return False
        if min(_numbers(self.left), _numbers(self.added)) > 1 or not (self._units or same - {"number"}):
            return False
        if not (self._is_same_verb or any(self._lights) or self.head_left):
            return False
        others = [
            {word for phrase in some for word in phrase.words if not measure(word)} for some in (self.old, self.new)
        ]
        if all(others):
            values = {word for some in others for word in some} - self._units
            return self.a.verb == self.b.verb == "be" and all(map(self._is_name, values))
        return {phrase.relation for phrase in self._only_new} <= {OBJECT, "in"}

    @property
    def _is_other_case(self) -> bool:
        relations = {phrase.relation for phrase in self._only_old} | self.pair
        return self._is_told or not self.pair or bool(relations & CASE)

    @property
    def _is_other_value(self) -> bool:
        """Values that exclude each other, after verbs that say the same."""
        if _sorts(self.left) or _sorts(self.added) or self._is_other_case or max(len(self.left), len(self.added)) > 3:
            return False
        a, b = self.a.verb, self.b.verb
        is_alike = self._are_light or self._is_same_verb or (any(self._lights) and self.pair <= {"from", "with"})
        if not is_alike or {a, b} & OPEN or not {phrase.relation for phrase in self._only_new} <= {"with"}:
            return False
        if self.left & self.a.head and not (
            all(map(self._is_name, self.left - self.a.head)) and all(map(self._is_name, self.added))
        ):
            return False
        if self.pair == {OBJECT} and not self._is_one_object:
            return False
        if len(self.pair) == 2 and (a == b == "be" or "to" in self.pair):
            return False
        if ("every" in self.older.raw) != ("every" in self.newer.raw):
            return False
        if self.pair == {"to"} and not {a, b} <= GOALS:
            return False
        return not any(map(self._is_quality, (*self.left, *self.added)))

    @property
    def _is_one_object(self) -> bool:
        a, b = self.a, self.b
        if a.verb == b.verb == "be":
            return a.has_article == b.has_article
        is_default = "default" in self.older.raw and "default" in self.newer.raw
        return is_default or {a.verb, b.verb} <= ONE_OBJECT

    @cached_property
    def _opposites(self) -> tuple[str, str] | None:
        pairs = ((x, y) for x in (*self.left, self.a.verb) for y in (*self.added, self.b.verb))
        return next((pair for pair in pairs if pair in CONTRARIES), None)

    @property
    def _is_opposed_by_verb(self) -> bool:
        a, b = self.a.verb, self.b.verb
        return any((x, b) in CONTRARIES for x in (a, *self.left)) or any((a, y) in CONTRARIES for y in self.added)

    @property
    def _is_opposed(self) -> bool:
        """Both say opposites of the same thing, and nothing else differs on one side."""
        if self._opposites is None or self._is_told or self._differs_twice:
            return False
        left, added = self.left - {self._opposites[0]}, self.added - {self._opposites[1]}
        if self.head_added:
            is_agent = not self.head_left and akin(self.a.verb, self.b.verb) and len(self.shared) > 1
            return is_agent and not left and not added - self.head_added
        is_one = not self.head_left or self._says_newness or not all(map(str.isalpha, self.topic))
        return is_one and (not added or not left - self.head_left)

    @property
    def _has_other_means(self) -> bool:
        """`The packages are locked with pip`, and `uv locks the packages`."""
        if not self.head_added or self.head_left or self.new or self._is_told or not BE & set(self.older.raw):
            return False
        is_means = bool(self.old) and {phrase.relation for phrase in self.old} <= {"with", "by"}
        return is_means and akin(self.a.verb, self.b.verb) and self.a.verb not in LIGHT

    @property
    def _has_ended(self) -> bool:
        """`Support for X has ended`."""
        raw = self.newer.raw
        has_ended = any(word in ENDINGS - {*self.older.raw} and before in _PERFECT for before, word in pairwise(raw))
        if not has_ended or self.added - ENDING_STEMS:
            return False
        said = self.b.words - ENDING_STEMS
        return len(said) > 1 or (len(said) == 1 and said <= self.names and not said <= self.a.head)

    @property
    def _is_reserved(self) -> bool:
        """`Everybody may push`, and `only the bot may push`."""
        if self.older.raw[0] not in EVERYBODY or "only" not in self.newer.raw:
            return False
        said = [word for phrase in self.a.phrases for word in phrase.words]
        return bool(said) and not without(said, self.b.all_words)

    @property
    def _has_other_holder(self) -> bool:
        """`Kim is the head of research`, and `Lou is the head of research`."""
        a, b = self.a, self.b
        if not (a.verb == b.verb == "be" and len(a.phrases) > 1 and a.phrases == b.phrases) or a.head & b.head:
            return False
        return all(_has_role(statement.raw) for statement in (self.older, self.newer))

    def _is_name(self, word: str) -> bool:
        return word in self.names or not word.isalpha()

    def _is_quality(self, word: str) -> bool:
        """Whether it says how something is, of which several hold at once."""
        if word in self.names:
            return False
        return word in QUALITIES or any(
            stem(raw) == word
            and ((raw in statement.qualities and not PROPERTIES & self.topic) or bool(QUALITY.fullmatch(raw)))
            for statement in (self.older, self.newer)
            for raw in statement.raw
        )


def _has_role(raw: tuple[str, ...]) -> bool:
    return any(pair == ("is", "the") for pair in pairwise(raw[:5]))


def _parts(frame: Frame, words: frozenset[str]) -> list[Phrase]:
    found = (Phrase(relation, tuple(filter(words.__contains__, said))) for relation, said in frame.phrases)
    return [phrase for phrase in found if phrase.words]


def _unpaired(frame: Frame, words: frozenset[str], others: list[Phrase], pair: frozenset[str]) -> list[Phrase]:
    known = {phrase.relation for phrase in others} | pair | {"of"}
    return [phrase for phrase in frame.phrases if phrase.relation not in known and words.issuperset(phrase.words)]


def _is_light(verb: str) -> bool:
    return not verb or verb in LIGHT


def _sorts(words: frozenset[str]) -> frozenset[str]:
    return frozenset(sort for word in words if (sort := measure(word)))


def _numbers(words: frozenset[str]) -> int:
    return sum(measure(word) == "number" for word in words)


def _beside_number(statement: Statement) -> frozenset[str]:
    raw, verb = statement.raw, frame_of(statement).verb
    places = [place for place, word in enumerate(raw) if word[0].isdigit()]
    near = {stem(raw[at]) for place in places for at in (place - 1, place + 1) if 0 <= at < len(raw)}
    return frozenset(one for one in near if is_content(one) and one != verb and one not in LIGHT and not measure(one))
