"""Tensions of two beliefs: whether they conflict, how badly, and what their confidence becomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from processors.memory.rules.change import revises
from processors.valence.rules.wording import Wording, has_more_values, negates, opposes, says_the_same, wording_of
from streams.ids import derived_id

TYPES = ("contradiction", "temporal_conflict", "scope_conflict", "partial_overlap")
SEVERITIES = ("low", "medium", "high", "critical")
STATUSES = ("detected", "investigating", "resolved", "accepted")
ACTIONS = ("supersede_a", "supersede_b", "keep_both", "archive_both")
NEGATION, ANTONYM, VALUE = 0.4, 0.3, 0.4
CONFLICT = 0.3
CANDIDATE_COSINE = 0.75
OVERLAP_COSINE = 0.92
DUPLICATE_COSINE = 0.90
CLOSE_COSINE = 0.85
CANDIDATES = 20
CONSISTENT = 0.7
"""internal_consistency of a belief that had tensions and has none open."""


@dataclass(frozen=True)
class Claim:
    """A belief as it is compared.

    Times are UTC; `subjects` and `entities` are canonical ids or forms, both sides alike.
    """

    belief_id: str
    content: str
    overall: float
    created_at: datetime
    domain_path: Sequence[str] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    subjects: frozenset[str] = frozenset()
    entities: frozenset[str] = frozenset()

    @cached_property
    def wording(self) -> Wording:
        return wording_of(self.content)


@dataclass(frozen=True, slots=True)
class Finding:
    """A conflict between two beliefs; `a` is the older one.

    `consistency_*`: what it leaves of their internal_consistency.
    """

    belief_a_id: str
    belief_b_id: str
    type: str
    severity: str
    signal: float
    score: float
    materiality: float
    cosine: float | None
    consistency_a: float
    consistency_b: float
    description: str
    suggested_action: str | None

    @property
    def tension_id(self) -> str:
        return tension_id(self.belief_a_id, self.belief_b_id)


def tension_id(one: str, other: str) -> str:
    """The id of the tension between two beliefs, whichever is named first: a pair has one, for ever."""
    return derived_id("valence.tension", *sorted((one, other)))


def signals(a: Claim, b: Claim) -> tuple[bool, bool, bool]:
    """Negation, antonym, value."""
    first, second = a.wording, b.wording
    older, newer = sorted((a, b), key=lambda held: held.created_at)
    value = revises(older.content, newer.content) or has_more_values(first, second)
    return negates(first, second), opposes(first, second), value


def signal_of(negation: bool, antonym: bool, value: bool) -> float:
    """min(1, .4·negation + .3·antonym + .4·value)."""
    return min(1.0, NEGATION * negation + ANTONYM * antonym + VALUE * value)


def score_of(signal: float, cosine: float | None) -> float:
    """signal + .5·max(0, cosine - .85)."""
    return signal + 0.5 * max(0.0, (cosine or 0.0) - CLOSE_COSINE)


def severity_of(score: float, materiality: float, overall_a: float, overall_b: float) -> str:
    """critical, high, medium or low."""
    if materiality >= 0.6 and min(overall_a, overall_b) >= 0.8:
        return "critical"
    return "high" if score > 0.5 else "medium" if score >= 0.35 else "low"


def consistency(severity: str, other_overall: float) -> float:
    """The internal_consistency of a belief in a tension of this severity with one of that confidence."""
    if severity == "low":
        return 0.5
    return 0.3 if other_overall < 0.75 else 0.1 if other_overall < 0.95 else 0.0


def is_duplicate(a: Claim, b: Claim, cosine: float) -> bool:
    """Whether two texts say the same in other words.

    They are very near, do not conflict, name the same entities, and neither names anything that the other lacks.
    """
    return (
        cosine > DUPLICATE_COSINE
        and a.entities == b.entities
        and says_the_same(a.wording, b.wording)
        and not any(signals(a, b))
    )


def judge(one: Claim, other: Claim, cosine: float | None) -> Finding | None:
    """What is between two beliefs, None when they do not conflict. Being alike is never a conflict by itself.

    Of two from the same moment `one` counts as the older.
    """
    a, b = sorted((one, other), key=lambda held: held.created_at)
    found = signals(a, b)
    signal = round(signal_of(*found), 6)
    if signal < CONFLICT:
        return None
    score = score_of(signal, cosine)
    materiality = score * math.sqrt(a.overall * b.overall)
    severity = severity_of(round(score, 9), round(materiality, 9), a.overall, b.overall)
    kind = _type(a, b, cosine)
    return Finding(
        a.belief_id,
        b.belief_id,
        kind,
        severity,
        signal,
        score,
        materiality,
        cosine,
        consistency(severity, b.overall),
        consistency(severity, a.overall),
        _describe(kind, found),
        suggested_action(a, b),
    )


def _type(a: Claim, b: Claim, cosine: float | None) -> str:
    first, second = a.wording, b.wording
    if (a.valid_from, a.valid_until) != (b.valid_from, b.valid_until) or first.time_words != second.time_words:
        return "temporal_conflict"
    if a.domain_path and b.domain_path and not set(a.domain_path) & set(b.domain_path):
        return "scope_conflict"
    fewer, more = sorted((first.values, second.values), key=len)
    if cosine is not None and cosine > OVERLAP_COSINE and fewer and fewer < more:
        return "partial_overlap"
    return "contradiction"


def _describe(kind: str, found: tuple[bool, bool, bool]) -> str:
    reasons = (
        "one denies what the other says",
        "they use opposite words",
        "they give another value for the same thing",
    )
    said = " and ".join(reason for reason, holds in zip(reasons, found, strict=True) if holds)
    return f"{kind.replace('_', ' ').capitalize()}: {said}."


def suggested_action(a: Claim, b: Claim) -> str | None:
    """Supersede the side whose other is both more recent and more confident; None when neither is."""
    if b.created_at > a.created_at and b.overall > a.overall:
        return "supersede_a"
    if a.created_at > b.created_at and a.overall > b.overall:
        return "supersede_b"
    return None
