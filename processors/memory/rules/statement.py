"""A sentence as it is compared with another: its words without what says only that something changed.

Words are case-folded and without grammar that differs freely (articles, `we`, `now`); numbers, weekdays and
frequencies have one spelling each.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from processors.memory.rules.dialogue import COURTESIES, PRONOUNS
from processors.memory.rules.words import word_set

MAX_WORDS = 60
"""A longer sentence is not compared: it says more than one thing."""
STATEMENTS = 512
"""What follows from a statement alone is kept of this many, 15 KB each: forty neighbours are compared with a memory."""


CLAUSE = re.compile(r"[,;:] ")
_SIGN = re.compile(r"[\d/._]")
_TOKEN = re.compile(r"\d+(?:[.:]\d+)? ?[ap]m\b|\d+(?:[.,:]\d+)*|[^\W_][\w+#-]*(?:['./][\w+#-]+)*")
_COUNTS = "one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {word: str(number) for number, word in enumerate(_COUNTS.split(), 1)}
_RANKS = "first second third fourth fifth sixth seventh eighth ninth tenth"
_NUMBERS |= {"once": "1", "twice": "2"} | {word: f"{number}." for number, word in enumerate(_RANKS.split(), 1)}
_FREQUENCIES = {
    "hourly": "every-hour",
    "daily": "every-day",
    "nightly": "every-night",
    "weekly": "every-week",
    "monthly": "every-month",
    "quarterly": "every-quarter",
    "yearly": "every-year",
    "annually": "every-year",
}
_WEEKDAYS = word_set("monday tuesday wednesday thursday friday saturday sunday")
_MONTHS = word_set("january february march april june july august september october november december")
_BEFORE_MONTH = word_set("in to until till by since from before after of early late mid")
"""After these `may` is the month."""
_SPANS = word_set("second minute hour day night week month quarter year morning evening afternoon weekend")
_DROPPED = word_set(
    "a an the our we you this that these those it its there please usually still just all always dr mr mrs ms prof"
)
_MARKERS = word_set("again now currently nowadays already meanwhile recently finally today instead")
BE = word_set("is are was were be been being am")
_DEGREES = word_set("so very too really quite rather extremely incredibly truly")
AUXILIARIES = word_set(
    "has have does do makes means gives helps should would could might one had was were must will can may"
)
"""After what `this` stands for something else: `this helps`, unlike `this repository`."""
_THIS = word_set("this these")
_NEGATIONS = word_set("not no never n't cannot neither none nobody nothing false incorrect wrong")
_NEGATING = word_set("fail reject deny refuse avoid")
_PLANS = word_set(
    "might could would maybe perhaps planned planning consider considering considered want wants if "
    "gonna wanna let let's whether suppose wonder hope hopes will shall propose proposes proposed suggest suggests "
    "suggested idea"
)
_CHOICES = (("we", "may"), ("i", "may"))
"""`We may use X` leaves open whether it comes to that."""
_POSSESSIVES = word_set("my our the your his her their")
_QUESTIONS = word_set(
    "should what which who whose whom when where why how do does did can shall will would could is are"
)
_COMPARISONS = word_set("than also both another either sometimes besides additionally")
_ENDINGS = (
    "ations",
    "ation",
    "ating",
    "ated",
    "ates",
    "ate",
    "ments",
    "ment",
    "ings",
    "ing",
    "ies",
    "ed",
    "es",
    "s",
    "e",
    "y",
)
_FREE = _DROPPED | _MARKERS | _NEGATIONS | word_set("do does did new 's")
_Phrases = Sequence[tuple[tuple[str, ...], tuple[str, ...]]]
_ON_OFF = {"on": "enabled", "off": "disabled"}
_EACH = word_set("every each")
_PLAINER: _Phrases = (
    (("switched", "on"), ("enabled",)),
    (("turned", "on"), ("enabled",)),
    (("switched", "off"), ("disabled",)),
    (("turned", "off"), ("disabled",)),
    (("is", "planned", "for"), ("is", "on")),
    (("scheduled", "for"), ("on",)),
    (("due", "on"), ("on",)),
    (("user", "wants"), ("user", "prefers")),
    (("user", "would", "like"), ("user", "prefers")),
    (("user", "does", "not", "want"), ("user", "does", "not", "prefer")),
    (("has", "been"), ("is",)),
    (("have", "been"), ("are",)),
    (("gave", "up"), ("stopped",)),
    (("given", "up"), ("stopped",)),
    (("went", "up"), ("raised",)),
    (("went", "down"), ("lowered",)),
    (("put", "off"), ("postponed",)),
    (("joined",), ("is", "in")),
    (("pushed", "back"), ("postponed",)),
    (("pushed", "out"), ("postponed",)),
    (("put", "back"), ("postponed",)),
    (("got", "cut"), ("was", "cut")),
)
"""What says the same in plainer words."""
_EMPTY: _Phrases = tuple(
    (tuple(phrase.split()), ())
    for phrase in (
        "no longer",
        "any more",
        "anymore",
        "as of now",
        "from now on",
        "these days",
        "is done",
        "are done",
    )
)
_PLAINER_STARTS = frozenset(phrase[0] for phrase, _ in _PLAINER)
_EMPTY_ENDS = frozenset(phrase[-1] for phrase, _ in _EMPTY)
"""A sentence with none of these words has none of the phrases: it is not looked through for each."""
ENDED: Sequence[tuple[str, ...]] = (("no", "longer"), ("any", "more"), ("anymore",))
_MARKING = (
    *ENDED,
    ("new",),
    ("as", "of"),
    *(("since", word) for word in sorted(_WEEKDAYS | _MONTHS | {"version", "then", "today"})),
    ("from", "now", "on"),
    ("these", "days"),
)
_ONWARDS = re.compile(
    r"\b[Ff]rom (?:this|next|that|the next|today|tomorrow|now|then|\w+day|version|\d+)\b(?: \w+){0,2} (?:on|onwards?)\b"
)
"""`from this month on`."""
_AFTER_STATE = word_set("for by in at when again until since now")
_STOP = (
    _DROPPED
    | BE
    | word_set(
        "i he she they my your his her their me him them us in on at by for from with as to of into onto over under "
        "and or but then so such very has have had having must should can about until after before through via"
    )
)


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """A word without its commonest English endings; what has a digit or a dot stays whole."""
    if word in BE:
        return "be"
    if word.removesuffix("s") in _WEEKDAYS | _SPANS:
        return word.removesuffix("s")
    if not word.isalpha() or word.endswith("ss") or word in _MONTHS:
        return word
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            left = word[: -len(ending)]
            if ending in ("ed", "ing") and left[-1] == left[-2] and left[-1] in "bdgmnprt":
                return left[:-1]
            return stem(left) if ending.startswith("ment") else left
    return word


@lru_cache(maxsize=8192)
def is_content(word: str) -> bool:
    """Whether a stem means something by itself: it is neither grammar nor a negation."""
    return word not in _STOP


@lru_cache(maxsize=8192)
def measure(word: str) -> str | None:
    """What sort of value a word is: a number, time, weekday, month, frequency or span; None: no value."""
    if word[0].isdigit() or (word[0] == "v" and word[1:2].isdigit()):
        return "time" if ":" in word or word.endswith("m") else "number"
    if word.startswith("every-"):
        return "frequency"
    if word in _WEEKDAYS:
        return "weekday"
    return "month" if word in _MONTHS or word == "month-5" else "span" if word in _SPANS else None


@dataclass(frozen=True)
class Statement:
    """One sentence, taken apart when asked."""

    text: str

    @cached_property
    def raw(self) -> tuple[str, ...]:
        """All words, case-folded; `n't` is `not`, numbers are digits, `every six hours` is one word."""
        folded = unicodedata.normalize("NFKC", self.text).replace("\u2019", "'").casefold()
        found: list[str] = []
        for token in _TOKEN.findall(folded):
            if token in ("can't", "cannot"):
                found += ["can", "not"]
            elif token.endswith("n't"):
                found += [token[:-3], "not"]
            elif token == "may" and found and (found[-1][0].isdigit() or found[-1] in _BEFORE_MONTH):
                found.append("month-5")
            elif token[0].isdigit():
                found.append(token.replace(" ", "") if token[-1] == "m" else re.sub(r",(?=\d{3}(?:\D|$))", "", token))
            else:
                plain = token.removesuffix("'s")
                found += [_FREQUENCIES.get(plain, plain)] + (["'s"] if plain != token else [])
        if not _PLAINER_STARTS.isdisjoint(found):
            for phrase, plainer in _PLAINER:
                found = _replace(found, phrase, plainer)
        return tuple(_frequencies(_states([_NUMBERS.get(word, word) for word in found])))

    @cached_property
    def clauses(self) -> tuple[tuple[str, ...], ...]:
        """The words of each clause between commas."""
        return tuple(Statement(part).raw for part in CLAUSE.split(self.text))

    @cached_property
    def names(self) -> frozenset[str]:
        """The words that are written with a capital or a digit, case-folded, but for the first one."""
        found = _TOKEN.findall(unicodedata.normalize("NFKC", self.text).replace("\u2019", "'"))
        return frozenset(
            word.casefold().removesuffix("'s") for word in found[1:] if word != word.lower() or _SIGN.search(word)
        )

    @cached_property
    def qualities(self) -> frozenset[str]:
        """The words that stand by themselves after `is`, or after `so` and `very`, as adjectives do.

        Names and plurals are none.
        """
        found = (after for before, after in zip(self.raw, self.raw[1:], strict=False) if before in BE | _DEGREES)
        return frozenset(word for word in found if not word.endswith("s") and measure(word) is None) - self.names

    @cached_property
    def is_comparable(self) -> bool:
        """Whether it says what holds: neither a question, a plan, a comparison, nor something said besides."""
        words = set(self.raw)
        return (
            2 <= len(self.raw) <= MAX_WORDS
            and not self.text.rstrip(" \"')").endswith(("?", ":"))
            and not self.text.startswith(("|", "//", "#"))
            and (self.raw[0] not in _QUESTIONS or self.raw[1] == "not")
            and self.raw[0] not in COURTESIES
            and (self.raw[0] not in PRONOUNS or (self.raw[0] in _THIS and self.raw[1] not in BE | AUXILIARIES))
            and not any(word.endswith("'ll") for word in self.raw)
            and not words & _PLANS
            and not words & _COMPARISONS
            and self.raw[-1] != "too"
            and self.raw[:2] not in _CHOICES
            and not any(_follows(self.raw, *phrase) for phrase in (("as", "well"), ("plan", "to"), ("plans", "to")))
        )

    @cached_property
    def is_clause(self) -> bool:
        """Whether a part of a sentence says something by itself."""
        return len(self.raw) >= 3 and self.is_comparable

    @cached_property
    def is_marked(self) -> bool:
        """Whether it says itself that it was otherwise before."""
        return (
            bool(_MARKERS & set(self.raw))
            or any(_follows(self.raw, *phrase) for phrase in _MARKING)
            or ("from" in self.raw and _ONWARDS.search(self.text) is not None)
        )

    @cached_property
    def has_ended(self) -> bool:
        """Whether it says that something holds no longer."""
        return any(_follows(self.raw, *phrase) for phrase in ENDED)

    @cached_property
    def is_denied(self) -> bool:
        if not _NEGATIONS.isdisjoint(self.raw):
            return True
        return any(stem(word) in _NEGATING and not word.endswith("ed") for word in self.raw)

    @cached_property
    def plain(self) -> tuple[str, ...]:
        """The words without free grammar, markers and negations; a role precedes the name that has it."""
        kept = list(self.raw)
        if not _EMPTY_ENDS.isdisjoint(kept):
            for phrase, plainer in _EMPTY:
                kept = _replace(kept, phrase, plainer)
        if _is_name_of_role(kept):
            place = next(number for number, word in enumerate(kept) if word in BE)
            kept = [*kept[place + 1 :], kept[place], *kept[:place]]
        return tuple(_with_means([word for word in kept if word not in _FREE]))

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The stems of `plain`."""
        return tuple(map(stem, self.plain))

    @cached_property
    def contents(self) -> frozenset[str]:
        return frozenset(word for word in self.words if is_content(word))


def _first(words: Sequence[str], among: Collection[str]) -> int:
    """Where the first of these words stands; 0: nowhere."""
    return next((place for place, word in enumerate(words) if word in among), 0)


def _states(words: Sequence[str]) -> list[str]:
    """`is on` and `is off` as `is enabled` and `is disabled`."""
    if _ON_OFF.keys().isdisjoint(words):
        return list(words)
    if words[0] in ("turned", "switched") and (end := _first(words[:5], _ON_OFF)):
        words = [*words[1:end], "is", _ON_OFF[words[end]], *words[end + 1 :]]
    return [
        _ON_OFF[word]
        if word in _ON_OFF and place and words[place - 1] in BE and (*words, "for")[place + 1] in _AFTER_STATE
        else word
        for place, word in enumerate(words)
    ]


def _is_name_of_role(words: Sequence[str]) -> bool:
    """`Pavel is my manager`: a name, and what it is to somebody."""
    place = next((number for number, word in enumerate(words) if word in BE), 0)
    role = next((word for word in words[place + 1 :] if word not in _MARKERS), "")
    is_name = 0 < place <= 3 and words[0] not in _POSSESSIVES and words[0] not in ("i", "it", "this", "that")
    return is_name and (role in _POSSESSIVES or (role == "the" and words[0] not in ("the", "a", "an")))


def _with_means(words: list[str]) -> list[str]:
    """`use X for Y` and `for Y use X` as `Y with X`."""
    place = next((number for number, word in enumerate(words) if word in ("use", "uses")), None)
    if place is None:
        return words
    if words[0] == "for":
        return [*words[1:place], "with", *words[place + 1 :]]
    end = next((number for number in range(place, len(words)) if words[number] in ("for", "to")), None)
    if end is None or place > 1:
        return words
    return [*words[:place], *words[end + 1 :], "with", *words[place + 1 : end]]


def _frequencies(words: Sequence[str]) -> list[str]:
    """`every second day`, `each week` and `every 6 hours` as one word each."""
    if _EACH.isdisjoint(words):
        return list(words)
    found: list[str] = []
    place = 0
    while place < len(words):
        if words[place] in _EACH:
            end = place + 1
            while end < min(len(words), place + 3) and words[end].removesuffix("s") not in _SPANS | _WEEKDAYS:
                end += 1
            if end < len(words) and words[end].removesuffix("s") in _SPANS | _WEEKDAYS:
                found.append("every-" + "-".join(word.removesuffix("s") for word in words[place + 1 : end + 1]))
                place = end + 1
                continue
        found.append(words[place])
        place += 1
    return found


def _follows(words: Sequence[str], *phrase: str) -> bool:
    return place_of(words, phrase) is not None


def place_of(words: Sequence[str], phrase: tuple[str, ...]) -> int | None:
    """Where these words first follow each other; None: nowhere."""
    if phrase[0] not in words:
        return None
    places = range(len(words) - len(phrase) + 1)
    return next((place for place in places if tuple(words[place : place + len(phrase)]) == phrase), None)


def _replace(words: list[str], phrase: tuple[str, ...], plainer: tuple[str, ...]) -> list[str]:
    if phrase[0] not in words:
        return words
    found: list[str] = []
    place = 0
    while place < len(words):
        if tuple(words[place : place + len(phrase)]) == phrase:
            found += plainer
            place += len(phrase)
        else:
            found.append(words[place])
            place += 1
    return found
