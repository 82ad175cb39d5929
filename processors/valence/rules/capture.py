"""Automatic capture: what a user's turn says that is worth keeping, by the words that announce it. Pure.

It reads English phrases, not sense; the first signal in the order of their scores is the one that counts. Off unless
the node is told otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

MAX_PER_SESSION = 10
MIN_SCORE = 0.50
PASSING = 0.35
AUTO = "auto"
"""How belief and session are linked when no call asked for it."""

SIGNALS: Sequence[tuple[str, float, re.Pattern[str]]] = tuple(
    (name, score, re.compile(pattern, re.IGNORECASE))
    for name, score, pattern in (
        (
            "explicit_request",
            0.90,
            r"\b(?:please )?(?:remember|note|keep in mind|bear in mind|make a note|don't forget"
            r"|do not forget|for the record)\b"
            r"(?!\s+(?:when|how|if|me)\b)[\s,:]*(?:that\b|of\b)?[\s,:]*(?=\S)",
        ),
        (
            "decision_with_rationale",
            0.80,
            r"\b(?:(?:we|i|let's|team) (?:have |'ve )?(?:decided|chose|agreed|settled|are going|'re going"
            r"|will use|go)|decision)\b"
            r".*\b(?:because|since|so that|due to|as it|in order to)\b",
        ),
        (
            "stated_preference",
            0.75,
            r"\b(?:(?:i|we) (?:really |always |never |'d |would )?(?:prefer|like|love|hate|dislike|rather|favou?r)"
            r"|my favou?rite)\b",
        ),
        (
            "correction",
            0.70,
            r"^(?:no|actually|correction)\b[\s,:]"
            r"|\b(?:that's (?:wrong|not right|not true)|that is (?:wrong|not right)|i meant)\b",
        ),
        (
            "project_fact",
            0.65,
            r"\b(?:our|the|this) (?:\w+ )?(?:project|repo|repository|service|database|api|team|build"
            r"|deployment|gateway|server|app|cluster|pipeline)\b"
            r".*\b(?:is|are|uses?|runs?|lives?|has|needs?|depends)\b",
        ),
        ("summary", 0.50, r"\b(?:in summary|to sum up|in short|overall|the main point|the theme|tl;dr)\b"),
    )
)
"""Name, score and phrase of each, best first; a sentence without any is said in passing and is not stored."""


class Capture(NamedTuple):
    """What is kept of a turn: the sentence, the signal that it gave, and how sure that is."""

    content: str
    signal: str
    score: float


def capture(role: str, text: str) -> Capture | None:
    """The sentence of a user's turn with the best signal, None when none reaches .50.

    A question is kept only when that is asked for.
    """
    if role != "user":
        return None
    best = max(map(signal_of, _sentences(text)), key=lambda captured: captured.score, default=None)
    return best if best is not None and best.score >= MIN_SCORE else None


def signal_of(sentence: str) -> Capture:
    """The best signal of a sentence, and what would be kept of it: of a request what is asked to be kept."""
    for name, score, phrase in SIGNALS:
        match = phrase.search(sentence)
        if match is None or (sentence.endswith("?") and name != "explicit_request"):
            continue
        content = sentence[match.end() :].strip() if name == "explicit_request" else sentence
        if content.strip(" .!?"):
            return Capture(content, name, score)
    return Capture(sentence, "passing", PASSING)


def _sentences(text: str) -> list[str]:
    return [
        sentence.strip() for sentence in re.split(r"(?<=[.!?])\s+|\n+", text.replace("\u2019", "'")) if sentence.strip()
    ]
