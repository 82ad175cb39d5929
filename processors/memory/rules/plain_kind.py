"""What sort of thing a statement is: a fact, decision, preference, goal, lesson or question.

By the words that announce it, in the languages that have a line here; what none announces is a fact.
"""

from __future__ import annotations

import re

FACT, DECISION, PREFERENCE, GOAL, LESSON, QUESTION = "fact", "decision", "preference", "goal", "lesson", "question"
PLAIN_KINDS = (FACT, DECISION, PREFERENCE, GOAL, LESSON, QUESTION)
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]\s]*$")
_SIGNS = (
    (
        DECISION,
        r"\b(?:decid(?:e|ed|es|ing)|decision|(?:we|i) (?:chose|agreed|settled|went with|will use|go with))\b"
        r"|\b(?:entschieden|beschlossen|entscheidung|entschied(?:en)? uns)\b"
        r"|\b(?:décidé|décision|avons choisi|decidido|decidimos|decisión|deciso|decisione)\b"
        r"|决定|決めた|決定|\bрешил[аи]?\b",
    ),
    (
        PREFERENCE,
        r"\b(?:prefers?|preferred|preference|favou?rite|dislikes?|(?:she|he|user) (?:likes|loves|hates)"
        r"|i (?:really )?(?:like|love|hate)|would rather)\b"
        r"|\b(?:bevorzug(?:t|e|en)|lieber|lieblings\w+|mag (?:kein|keine|keinen|am liebsten))\b"
        r"|\b(?:préfère|préférence|préférons|prefiere|prefiero|preferencia|preferisc[oe])\b"
        r"|偏好|喜欢|好み|好きだ|\bпредпочита\w+\b",
    ),
    (
        LESSON,
        r"\b(?:learn(?:ed|t)|lesson|turns out|turned out|reali[sz]ed|never again|next time)\b"
        r"|\b(?:gelernt|gemerkt|lehre|stellt(?:e)? sich heraus|nächstes mal)\b"
        r"|\b(?:appris|leçon|aprendi(?:do|mos)|lección|imparato|lezione)\b"
        r"|教训|学到|学んだ|教訓|\b(?:понял[аи]?|урок)\b",
    ),
    (
        GOAL,
        r"\b(?:goal|aims?|objective|milestone|(?:want|wants|plan|plans|planned) to)\b"
        r"|\b(?:ziel|zielen|wollen wir|wir wollen|bis (?:ende|zum) \w+ (?:fertig|steht))\b"
        r"|\b(?:objectif|voulons|objetivo|queremos|obiettivo|vogliamo)\b"
        r"|目标|目標|\bцель\b",
    ),
)
_CUES = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _SIGNS)


def is_question(text: str) -> bool:
    """Whether a text ends as a question."""
    return _QUESTION.search(text) is not None


def plain_kind(text: str) -> str:
    """One of PLAIN_KINDS. A question is what ends as one; else the first kind counts that a word announces."""
    if is_question(text):
        return QUESTION
    return next((kind for kind, cue in _CUES if cue.search(text)), FACT)
