"""Statements that do not say what holds.

They tell of an occasion, of what somebody is doing, or are called out."""

from __future__ import annotations

from itertools import pairwise

from processors.memory.rules.frame import frame_of
from processors.memory.rules.statement import BE, Statement, measure, stem
from processors.memory.rules.verbs import NEW_VERBS, PAST
from processors.memory.rules.vocabulary import GERUND
from processors.memory.rules.words import word_set

_LASTING = word_set("run host sit stand us serv")
"""Verbs that say of a thing how it is, also as `is running`."""
_SHORTLY = word_set("afterwards tonight temporarily briefly meantime")
_ONCE = (("last", "night"), ("did", "not"), ("for", "once"))
_SIGNS = _SHORTLY | {"this", *(first for first, _ in _ONCE)}


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


def is_brief(statement: Statement) -> bool:
    """Whether it tells of one day or a short time: `last night`, `this Sunday`, `did not`."""
    raw = statement.raw
    if _SIGNS.isdisjoint(raw):
        return False
    is_once = any(
        pair in _ONCE or (pair[0] == "this" and measure(stem(pair[1])) in ("weekday", "span")) for pair in pairwise(raw)
    )
    return is_once or not _SHORTLY.isdisjoint(raw)


def is_talk(statement: Statement) -> bool:
    """Whether it is called out, or is a line of code."""
    return statement.text.endswith("!") or "=>" in statement.text
