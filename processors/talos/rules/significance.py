"""How urgently what is known asks for attention: a score from counts, and its level. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True, slots=True)
class SignificanceCounts:
    """What of a namespace's live knowledge counts towards its significance.

    `high`: friction clusters of five records and more; `recurring`: of three or four; the others as their names say.
    """

    high: int = 0
    recurring: int = 0
    emerging: int = 0
    confirmed: int = 0
    contradictions: int = 0
    questions: int = 0

    def to_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Significance:
    """A score from 0 to 100 and URGENT, ATTENTION, REVIEW, MONITOR or STABLE."""

    score: int
    level: str


_WEIGHTS = {
    "high": (15, 30),
    "recurring": (5, 20),
    "emerging": (5, 15),
    "confirmed": (3, 10),
    "contradictions": (10, 20),
    "questions": (2, 5),
}
"""Count -> (points for each, points at most)."""


def rate(counts: SignificanceCounts) -> Significance:
    """The sum of capped points. From 30 down a recurring trouble or a contradiction still warrants a review."""
    score = sum(min(points * getattr(counts, name), most) for name, (points, most) in _WEIGHTS.items())
    warranted = counts.high >= 1 or counts.contradictions >= 1
    if score >= 50:
        return Significance(score, "URGENT")
    if score >= 30:
        return Significance(score, "ATTENTION")
    if warranted:
        return Significance(score, "REVIEW")
    return Significance(score, "MONITOR" if score >= 15 else "STABLE")


def relevance(semantic: float, indicators_true: int, indicators: int, occurrences: int) -> float:
    """How well a pattern fits a session, 0 to 1: meaning, indicators that hold now, number of occurrences."""
    often = min(1.0, occurrences / 10)
    meaning = max(0.0, semantic)
    if indicators == 0:
        return (0.5 * meaning + 0.2 * often) / 0.7
    return 0.5 * meaning + 0.3 * indicators_true / indicators + 0.2 * often
