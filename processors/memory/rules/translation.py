"""German and Chinese sentences in the words that the rules of change know.

Names and nouns stay as they are.

`Der Server läuft jetzt in Dublin` is `the Server run now in Dublin`: the rules are about such words and about what
differs between them. Tables: `languages/`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from importlib.resources import files

from processors.memory.rules.sentences import MAX_CHARACTERS
from processors.memory.rules.words import word_set

TEXTS = 4096
"""The translations of this many texts are kept."""
SHARED_CHARACTERS = 2
"""What two Chinese texts share of a run of unknown characters is a word of its own from this length on."""
LONGEST_RUN, MOST_RUNS = 40, 24
"""Longer runs of unknown characters, and of more runs the shorter ones, are not taken apart."""
_CHINESE = re.compile(r"[\u4e00-\u9fff]+")
_CHINESE_MARKS = str.maketrans(
    {"\u3002": ". ", "\uff0c": ", ", "\uff1b": "; ", "\uff1a": ": ", "\uff1f": "? ", "\uff01": "! ", "\u3001": ", "}
)
_DAY = re.compile(r"\b(\d{1,2})\. (?=[A-Z\u00c0-\u00dc])")
_FULL_HOUR = re.compile(r"(?<![:\d.])(\d{1,2}) Uhr\b")
_HOUR = re.compile(r"(\d{1,2}[:.]\d\d) Uhr\b")
_NUMBER = re.compile(r"(?<=\w )(?:number|nummer|n[or]\.) ?(?=\d)", re.IGNORECASE)
_NO_MORE = re.compile(r"\b(?:kein\w*|nicht) ([^,;.]+?) mehr\b")
_CLAUSE = re.compile(r"([,;:] | und | oder | aber | sondern )")
_TOKEN = re.compile(r"\d+:\d+|\w[\w./'+#-]*\w|\w|[^\w\s]")
_FROM_TO = re.compile(r"from +(\S+(?: \S+){0,3}?) +(moved|changed) to")
_WORD = re.compile(r"\w")
_PARTICIPLE = re.compile(r"(?:\w{0,4}ge\w{2,}(?:t|en)|(?:ver|be|er|ent|zer)\w{2,}(?:t|en)|\w+iert)")
_ENGLISH = word_set("the is are of and to we it for with was be on has have at user uses now from by my our you i")
_IN_BOTH = word_set("die in an war was man also will am so hat ab bei alter august september april november status")
_AUXILIARIES = frozenset(("is", "are", "was", "were", "has", "have"))
_MODALS = frozenset(("must", "may", "can"))
_INFINITIVE = re.compile(r"[a-z\u00e4\u00f6\u00fc]+en|have|run|go|host|meet")
_GOALS = frozenset(("on", "in", "at", "after", "to"))
_OCCASIONS = frozenset(("fixed", "added", "found", "finished", "removed", "renamed", "changed"))
_DONE = frozenset(("written", "rewritten", "sent", "kept", "done", "sold", "left", "led", "built"))


@dataclass(frozen=True)
class Language:
    """`words`: of the language, case-folded -> English; `longest`: of these, in words or characters."""

    words: Mapping[str, str]
    signs: frozenset[str]
    turns: frozenset[str]
    longest: int


@lru_cache(maxsize=TEXTS)
def in_known_words(text: str) -> str:
    """The text, where it is German or Chinese in words that the rules know."""
    if _CHINESE.search(text):
        return _chinese(text[:MAX_CHARACTERS].translate(_CHINESE_MARKS))
    return _german(text[:MAX_CHARACTERS]) if _is_german(text[:MAX_CHARACTERS]) else text


def side_by_side(one: str, other: str) -> tuple[str, str]:
    """Both texts in words that the rules know; `fact number 1` is `fact 1`.

    Chinese words that both have are told apart from what differs.
    """
    one, other = (_NUMBER.sub("", text[:MAX_CHARACTERS]) for text in (one, other))
    first, second = in_known_words(one), in_known_words(other)
    if first != one and second == other and _has_no_english(other):
        second = _german(other)
    elif second != other and first == one and _has_no_english(one):
        first = _german(one)
    runs, others = _chinese_runs(first), _chinese_runs(second)
    if runs and others:
        first = _CHINESE.sub(lambda run: _split(run[0], others), first)
        second = _CHINESE.sub(lambda run: _split(run[0], runs), second)
    return first, second


@lru_cache(maxsize=TEXTS)
def _chinese_runs(text: str) -> tuple[str, ...]:
    """The runs of Chinese characters in a text that may be taken apart, each once, longest first."""
    runs = {run for run in _CHINESE.findall(text) if len(run) <= LONGEST_RUN}
    return tuple(sorted(runs, key=lambda run: (-len(run), run))[:MOST_RUNS])


@lru_cache(maxsize=2)
def _language(name: str) -> Language:
    table = tomllib.loads(files("processors.memory.rules.languages").joinpath(f"{name}.toml").read_text("utf-8"))
    words = {word.casefold(): english for english, some in table["words"].items() for word in some}
    longest = max(max(len(word.split()), len(word) if _CHINESE.match(word) else 0) for word in words)
    return Language(words, frozenset(table["signs"].casefold().split()), frozenset(table["turns"].split()), longest)


def _is_german(text: str) -> bool:
    table = _language("german")
    found = re.findall(r"\w+", text)
    words = [word.casefold() for word in found if not (word.isupper() and len(word) > 1)]
    signs = sum(word in table.words or word in table.signs for word in words if word not in _IN_BOTH)
    return signs > sum(word in _ENGLISH for word in words)


def _has_no_english(text: str) -> bool:
    return not any(word in _ENGLISH for word in re.findall(r"\w+", text.casefold()))


def _german(text: str) -> str:
    text = _NO_MORE.sub(r"nicht mehr \1", _FULL_HOUR.sub(r"\1:00", _DAY.sub(r"\1 ", text)))
    sentences = re.split(r"(?<=[.!?])\s+|\n+", _HOUR.sub(r"\1", text))
    return "\n".join("".join(_clause(part) for part in _CLAUSE.split(sentence)) for sentence in sentences)


def _clause(text: str) -> str:
    """One clause; its participle stands behind the auxiliary, as in English."""
    table, words, found, place = _language("german"), _TOKEN.findall(text), list[str](), 0
    if not any(map(_WORD.match, words)):
        return text
    lead, tail = (" " * text[:1].isspace(), " " * text[-1:].isspace())
    while place < len(words):
        for length in range(min(table.longest, len(words) - place), 0, -1):
            phrase = " ".join(words[place : place + length])
            english = table.words.get(phrase.casefold())
            if english is not None and not (phrase.isupper() and len(phrase) > 1):
                found += english.split()
                place += length
                break
        else:
            found.append(words[place])
            place += 1
    end = len(found) - 1 if found and not _WORD.match(found[-1]) else len(found)
    return lead + " ".join(_in_order(found[:end], table.turns)) + "".join(found[end:]) + tail


def _in_order(words: list[str], turns: frozenset[str]) -> list[str]:
    place = next((place for place, word in enumerate(words) if word in _AUXILIARIES | _MODALS), None)
    if place is None and len(words) > 2 and words[-1] in _OCCASIONS:
        return [words[-1], *words[:-1]]
    if place is None or place >= len(words) - 2:
        return words
    last = words[-1]
    if words[place] in _MODALS:
        return [*words[: place + 1], last, *words[place + 1 : -1]] if _INFINITIVE.fullmatch(last) else words
    if not (last in turns or last.endswith("ed") or last in _DONE or (last.islower() and _PARTICIPLE.fullmatch(last))):
        return words
    if last in ("inherited", "switched"):
        words = ["from" if word == "by" else word for word in words]
    moved, rest = [*words[: place + 1], last], words[place + 1 : -1]
    if last in turns:
        goal = next((n for n in range(len(rest) - 1, -1, -1) if rest[n] in _GOALS), None)
        rest = [
            "to" if n == goal else "from" if goal is not None and n < goal and word == "by" else word
            for n, word in enumerate(rest)
        ]
    return moved + rest


def _chinese(text: str) -> str:
    return _FROM_TO.sub(r"\2 from \1 to", _CHINESE.sub(lambda run: f" {_segmented(run[0])} ", text))


def _segmented(run: str) -> str:
    """The known words of a run of characters in English, and what stands between them."""
    table, found, unknown, place = _language("chinese"), list[str](), "", 0
    while place < len(run):
        for length in range(min(table.longest, len(run) - place), 0, -1):
            english = table.words.get(run[place : place + length])
            if english is not None:
                found += [unknown, english] if unknown else [english]
                unknown = ""
                place += length
                break
        else:
            unknown += run[place]
            place += 1
    return " ".join(filter(None, [*found, unknown]))


def _split(run: str, others: Sequence[str]) -> str:
    """A run of unknown characters, taken apart where another one has the same characters."""
    if len(run) > LONGEST_RUN:
        return run
    for other in others:
        match = SequenceMatcher(None, run, other, autojunk=False).find_longest_match()
        if SHARED_CHARACTERS <= match.size < len(run):
            start, end = match.a, match.a + match.size
            parts = (run[:start], run[start:end], run[end:])
            return " ".join(_split(part, others) if part != parts[1] else part for part in parts if part)
    return run
