"""What the words of a belief give away: content words, negations, values, names.

Unicode words; `n't` is a word of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from processors.memory.rules.words import word_set

AFTER, BEFORE = 4, 2
"""A negation reaches this many words after and before itself."""


_NEGATIONS = word_set("not never no n't cannot without neither none nobody nothing nowhere false incorrect wrong")
_NEGATING_VERBS = word_set("fail reject deni deny refus avoid")
_STOP = word_set(
    "a an the this that these those it its is are was were be been being am do does did done has have had having "
    "will would shall should can could may might must of to in on at by for from with as into onto over under and "
    "or but if then than so such very we you he she they i our your his her their them us me my which who whom "
    "whose what when where why how there here about until now just also only always again"
)
_TIME_WORDS = ("was", "until", "now", "as of")
_TOKEN = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:t[\d:.]+z?)?"  # a date
    r"|v?\d+(?:[.,:]\d+)*"  # a number or version
    r"|[^\W\d_][^\W_]*(?:'[^\W\d_]+)?[+#]*"  # a word
)
_NAME = re.compile(r"[^\W\d_][^\W_]*[+#]*")
_SUFFIXES = ("ing", "ies", "ed", "es", "s", "e", "y")
ANTONYMS: Sequence[tuple[str, str]] = (
    ("good", "bad"),
    ("right", "wrong"),
    ("true", "false"),
    ("should", "should not"),
    ("always", "never"),
    ("prefer", "avoid"),
    ("like", "dislike"),
    ("works", "fails"),
    ("correct", "incorrect"),
)


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A word without its commonest English endings; enough for `uses`, `used` and `using` to meet."""
    if word.endswith("ss"):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 2:
            return word[: -len(suffix)]
    return word


@dataclass(frozen=True)
class Wording:
    """One text, taken apart when asked. Words are case-folded; content words are stems."""

    text: str

    @cached_property
    def tokens(self) -> tuple[str, ...]:
        """Words, numbers, dates and versions in order; `isn't` is `is`, `n't`."""
        folded = unicodedata.normalize("NFKC", self.text).replace("\u2019", "'").casefold()
        found: list[str] = []
        for token in _TOKEN.findall(folded):
            if token == "can't":
                found += ["can", "n't"]
            elif token == "won't":
                found += ["will", "n't"]
            elif token.endswith("n't") and len(token) > 3:
                found += [token[:-3], "n't"]
            else:
                found.append(token.removesuffix("'s"))
        return tuple(found)

    @cached_property
    def values(self) -> frozenset[str]:
        """Numbers, dates and versions; 1,000 and v2 are 1000 and 2."""
        return frozenset(_value(token) for token in self.tokens if _is_value(token))

    @cached_property
    def contents(self) -> tuple[str, ...]:
        """Stems of the words that carry meaning, in order: neither grammar, negation nor value."""
        return tuple(stem(token) for token in self.tokens if _is_content(token))

    @cached_property
    def content_set(self) -> frozenset[str]:
        return frozenset(self.contents)

    @cached_property
    def negations(self) -> tuple[str, ...]:
        """The negating words, in order; n't and cannot are not."""
        return tuple(_plain(token) for token in self.tokens if is_negation(token))

    @cached_property
    def negated(self) -> frozenset[str]:
        """Stems of the content words in reach of a negation."""
        reached: set[str] = set()
        for place, token in enumerate(self.tokens):
            if is_negation(token):
                near = self.tokens[max(0, place - BEFORE) : place + AFTER + 1]
                reached |= {stem(word) for word in near if _is_content(word)}
        return frozenset(reached)

    @cached_property
    def time_words(self) -> frozenset[str]:
        return frozenset(phrase for phrase in _TIME_WORDS if self.has(phrase))

    @cached_property
    def names(self) -> frozenset[str]:
        """Case-folded words that are written with a capital: names, or the beginning of a sentence."""
        words = (match.group() for match in _NAME.finditer(self.text))
        return frozenset(word.casefold() for word in words if word != word.lower() and word.casefold() not in _STOP)

    @cached_property
    def _plain_words(self) -> frozenset[str]:
        return frozenset(_plain(token) for token in self.tokens)

    def has(self, phrase: str) -> bool:
        """Whether the words of the phrase follow each other.

        `n't` counts as `not`; `should` before a negation does not count as `should`.
        """
        wanted = phrase.split()
        if wanted[0] not in self._plain_words:
            return False
        tokens = [_plain(token) for token in self.tokens]
        for place in range(len(tokens) - len(wanted) + 1):
            if tokens[place : place + len(wanted)] == wanted:
                following = tokens[place + len(wanted)] if place + len(wanted) < len(tokens) else None
                if not (phrase == "should" and following in ("not", "never")):
                    return True
        return False


@lru_cache(maxsize=1024)
def wording_of(text: str) -> Wording:
    """A text's wording, analysed once for all that it is compared with.

    A tool's answer and the detector compare the same texts.
    """
    return Wording(text)


@lru_cache(maxsize=4096)
def is_negation(token: str) -> bool:
    """Whether the word denies something."""
    return token in _NEGATIONS or stem(token) in _NEGATING_VERBS


def _plain(token: str) -> str:
    return "not" if token in ("n't", "cannot") else token


def _is_value(token: str) -> bool:
    return token[0].isdigit() or (token[0] == "v" and token[1:2].isdigit())


def _value(token: str) -> str:
    plain = token.removeprefix("v")
    return plain.replace(",", "") if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", plain) else plain


@lru_cache(maxsize=4096)
def _is_content(token: str) -> bool:
    return not _is_value(token) and token not in _STOP and not is_negation(token)


def negates(a: Wording, b: Wording) -> bool:
    """Exactly one negates a content word that both share, and not each has content words of its own."""
    shared = a.content_set & b.content_set
    if a.content_set - shared and b.content_set - shared:
        return False
    return bool(a.negated & shared) != bool(b.negated & shared)


def opposes(a: Wording, b: Wording) -> bool:
    """Whether the texts use opposite words of an antonym pair and share a content word besides."""
    for one, other in ANTONYMS:
        for first, second in ((one, other), (other, one)):
            if a.has(first) and b.has(second) and not a.has(second) and not b.has(first):
                members = {stem(word) for word in (*one.split(), *other.split())}
                if (a.content_set & b.content_set) - members:
                    return True
    return False


def has_more_values(a: Wording, b: Wording) -> bool:
    """One text says all that the other says and gives a further number, date or version for it."""
    if not a.values or not b.values or a.values == b.values or not (a.values < b.values or b.values < a.values):
        return False
    return bool(a.content_set & b.content_set) and (a.content_set <= b.content_set or b.content_set <= a.content_set)


def says_the_same(a: Wording, b: Wording) -> bool:
    """Whether nothing that matters stands in just one text: no value, name or negation.

    Similarity is for the caller to know.
    """
    is_named = a.names <= set(b.tokens) and b.names <= set(a.tokens)
    return is_named and a.values == b.values and sorted(a.negations) == sorted(b.negations)


def without_grammar(text: str) -> str:
    """The words of a question that say what it is about: without articles, pronouns, auxiliaries. All when nothing else
    is left."""
    return " ".join(token for token in Wording(text).tokens if token not in _STOP) or text
