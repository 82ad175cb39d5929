"""The analysis of text into search terms, the same for stored texts, queries and the overlay.

Case, accents and compatibility forms are folded, words are stemmed as English (which changes no other script), and
runs of scripts that put no spaces between words (Han, kana, Thai, Lao, Khmer, Myanmar) become characters and pairs
of characters. A text without any word is indexed by its symbols, so that whatever is stored can be found.
Beside its terms a text has its words as they are spelled, only their case folded: without a language's rules.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import tantivy

MAX_TERM_CHARS = 200
_UNSPACED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff"
    "\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U0003ffff]+"
)
_ACCENTS = re.compile("[\u0300-\u036f]")
_WORDS = r"[\w--_]+"
"""tantivy's (Rust's) word characters, which unlike Python's include combining marks; `snake_case` is two words."""
_ASCII_WORD = re.compile("[a-z0-9]+")
"""The same in folded ASCII, in a third of the time."""
_STOP_WORDS = (
    "a an the and or of to in on at for with is are was were be been do does did has have had "
    "i you he she it they we my your his her its their our me him them "
    "what which who when where why how that this these those as by from about not no so if "
    "then than too very can could would should will just also there here any some s t d m re ve ll"
)
STOP_WORDS = frozenset(_STOP_WORDS.split())
"""English words that say nothing by themselves: a query that has others is searched without them."""
MAX_STEMS = 30_000
_stems: list[dict[str, str]] = [{}]
"""Stems by word: texts repeat their words, and a look-up takes a twentieth of the stemmer's time."""
_local = threading.local()


def document_terms(text: str) -> list[str]:
    """Every term under which the text is found, in order, with repetitions."""
    return _terms(text, is_query=False)


def query_terms(text: str) -> list[str]:
    """The distinct terms of a query, without stop words unless there is nothing else. Nothing in the text is syntax."""
    terms = list(dict.fromkeys(_terms(text, is_query=True)))
    return [term for term in terms if term not in _stop_terms()] or terms


def document_words(text: str) -> list[str]:
    """Every word of the text, casefolded, in order, with repetitions; not stemmed, none left out."""
    return _split(_case_folded(text), text, is_query=False)


def query_words(text: str) -> list[str]:
    """The distinct words of a query as they are spelled."""
    return list(dict.fromkeys(_split(_case_folded(text), text, is_query=True)))


def terms_and_words(text: str) -> tuple[list[str], list[str]]:
    """`document_terms` and `document_words` of a text; it is split once where it has no accents to fold."""
    folded, case_folded = fold(text), _case_folded(text)
    words = _split(case_folded, text, is_query=False)
    bare = words if folded == case_folded else _split(folded, text, is_query=False)
    return _stemmed(bare), words


@cache
def _stop_terms() -> frozenset[str]:
    return frozenset(term for word in STOP_WORDS for term in _terms(word, is_query=True))


def _terms(text: str, *, is_query: bool) -> list[str]:
    return _stemmed(_split(fold(text), text, is_query=is_query))


def _stemmed(words: Sequence[str]) -> list[str]:
    stems = _stems[0]
    if missing := [word for word in words if word not in stems]:
        if len(stems) + len(missing) > MAX_STEMS:
            stems = _stems[0] = {}  # replaced, since other threads read the former
            missing = list(words)
        stems.update(zip(missing, _analyzers()[1].analyze("\n".join(missing)), strict=True))
    return [stems[word] for word in words]


def _split(folded: str, text: str, *, is_query: bool) -> list[str]:
    if folded.isascii() and (spaced := _ASCII_WORD.findall(folded)):
        return [word[:MAX_TERM_CHARS] for word in spaced]
    words: list[str] = []
    for word in _analyzers()[0].analyze(folded):
        if _UNSPACED.search(word):
            words.extend(_unspaced(word, is_query=is_query))
        else:
            words.append(word[:MAX_TERM_CHARS])
    # without a word its symbols stand for it; text of accents alone folds to nothing
    return words or [character for character in folded.strip() or text if not character.isspace()]


def _unspaced(word: str, *, is_query: bool) -> Iterator[str]:
    """A word, cut where it changes between scripts with and without spaces.

    Of a query pairs of characters are enough; they need not match singly.
    """
    start = 0
    for run in _UNSPACED.finditer(word):
        if run.start() > start:
            yield word[start : run.start()][:MAX_TERM_CHARS]
        characters = run.group()
        if not is_query or len(characters) == 1:
            yield from characters
        for first, second in pairwise(characters):
            yield first + second
        start = run.end()
    if start < len(word):
        yield word[start:][:MAX_TERM_CHARS]


def fold(text: str) -> str:
    """Case, compatibility forms and the accents of Latin, Greek and Cyrillic removed."""
    if text.isascii():
        return text.lower()
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text).casefold())
    return unicodedata.normalize("NFKC", bare)


def _case_folded(text: str) -> str:
    return (
        text.lower()
        if text.isascii()
        else unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    )


def _analyzers() -> tuple[tantivy.TextAnalyzer, tantivy.TextAnalyzer]:
    """One pair a thread: an analyzer keeps the state of the text at hand."""
    if not hasattr(_local, "analyzers"):
        from tantivy import Filter, TextAnalyzerBuilder, Tokenizer

        split = TextAnalyzerBuilder(Tokenizer.regex(_WORDS)).build()
        stem = TextAnalyzerBuilder(Tokenizer.regex("[^\n]+")).filter(Filter.stemmer("english")).build()
        _local.analyzers = split, stem
    found: tuple[tantivy.TextAnalyzer, tantivy.TextAnalyzer] = _local.analyzers
    return found
