"""How a text is read: sentences, the clauses that a connective joins, and the cue words in a clause.

English, by rule.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

_SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+|\n+")
_CUES = (
    (re.compile(r"\b(?:believe|belief|principle)\b", re.I), "Belief"),
    (re.compile(r"\b(?:decided|decision)\b", re.I), "Decision"),
    (re.compile(r"\b(?:reali[sz]ed|learned|insight)\b", re.I), "Insight"),
)
_INABILITY = re.compile(r"\b(?:cannot|can['’]t|unable\b|limit)", re.I)
_CONNECTIVE = re.compile(
    r"\b(?P<led>led\s+to)\b|(?P<so>,\s*so)\b(?!\s+that\b)|\b(?P<because>because)\b|\b(?P<connects>connects\s+to)\b"
    r"|\b(?P<contradicts>contradicts|but\s+I\s+thought)\b|\b(?P<refines>refines|clarifies)\b"
    r"|\b(?P<revealed>revealed)\b",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Link:
    """What a connective says about the clauses left and right of it. `backwards`: the right one comes first."""

    relation: str
    properties: Mapping[str, str] = field(default_factory=dict)
    backwards: bool = False


_LINKS: Mapping[str, Link] = {
    "led": Link("LED_TO", {"contribution": "direct"}),
    "so": Link("LED_TO", {"contribution": "direct"}),
    "because": Link("LED_TO", {"contribution": "direct"}, backwards=True),
    "connects": Link("LED_TO", {"contribution": "contextual"}),
    "contradicts": Link("CONTRADICTS"),
    "refines": Link("REFINES", {"kind": "clarification"}),
    "revealed": Link("REVEALED"),
}


def split_sentences(text: str) -> list[str]:
    """The sentences of a text: what `.`, `!`, `?` before a space, or a line's end, closes."""
    return [part.strip() for part in _SENTENCE_END.split(text) if _says_something(part)]


def split_clauses(sentence: str) -> tuple[list[str], list[Link]]:
    """The clauses of a sentence and, between each two, their link. A clause that says nothing is the empty text."""
    clauses, links, start = [], [], 0
    for match in _CONNECTIVE.finditer(sentence):
        clauses.append(_trimmed(sentence[start : match.start()]))
        links.append(_LINKS[match.lastgroup or ""])
        start = match.end()
    clauses.append(_trimmed(sentence[start:]))
    return clauses, links


def cued_labels(clause: str) -> list[str]:
    """The labels whose cue words stand in the clause, in the order of their first cue."""
    found = [(match.start(), label) for cue, label in _CUES if (match := cue.search(clause))]
    return [label for _, label in sorted(found)]


def is_question(sentence: str) -> bool:
    """Whether the sentence ends in a question mark, quotes and brackets aside."""
    return sentence.rstrip("\"'”’)] ").endswith("?")


def names_inability(clause: str) -> bool:
    """Whether the clause says what cannot be done."""
    return _INABILITY.search(clause) is not None


def _says_something(text: str) -> bool:
    return any(character.isalnum() for character in text)


def _trimmed(clause: str) -> str:
    return clause.strip(" \t\r\n,;:.!—–-") if _says_something(clause) else ""
