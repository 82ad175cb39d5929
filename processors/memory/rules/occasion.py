"""Statements that do not say what holds.

They tell of an occasion, of what somebody is doing, or are called out."""

from __future__ import annotations

from processors.memory.rules.frame import frame_of
from processors.memory.rules.statement import BE, Statement, stem
from processors.memory.rules.verbs import NEW_VERBS, PAST
from processors.memory.rules.vocabulary import GERUND
from processors.memory.rules.words import word_set

_LASTING = word_set("run host sit stand us serv")
"""Verbs that say of a thing how it is, also as `is running`."""


def is_told(statement: Statement) -> bool:
    """Whether it tells of an occasion, which another one does not change."""
    raw = statement.raw
    if {"is", "are", "be", "has", "have"} & set(raw[:6]):
        return False
    if (
        any(word.endswith("ed") and stem(word) not in NEW_VERBS for word in raw[:7])
        or frame_of(statement).verb == "took"
    ):
        return True
    return bool(PAST & set(raw)) and not any(stem(word) in NEW_VERBS for word in raw)


def is_doing(statement: Statement) -> bool:
    pairs = zip(statement.raw, statement.raw[1:], strict=False)
    return any(before in BE and GERUND.fullmatch(word) and stem(word) not in _LASTING for before, word in pairs)


def is_talk(statement: Statement) -> bool:
    """Whether it is called out, or is a line of code."""
    return statement.text.endswith("!") or "=>" in statement.text
