"""Relevance: how probably a row of a search is what was asked for.

    relevance = σ(w₀ + w₁ · late + w₂ · ahead + w₃ · ln rank)

late     the share of the question's tokens that the row meets (the side `late` of a hit), at most LATE_ENOUGH: above it
         a row repeats the question's words, and is not more often what was meant
ahead    by how much its score exceeds the mean of the rows 2 to FIRST: of many that are equally near, few are meant.
         Where there are fewer, one more counts, at LEVEL: a row is not ahead because it is alone
rank     its place, from 1

Only differences and shares count, because the level of all scores is another in each store; LEVEL is for want of it. A
row without token vectors (they are still being made, or the model gives none) has no relevance. docs/search.md says how
the weights were chosen, and what they reach. What judgements of a namespace teach comes on top (`Calibration`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from storage.search.records.hits import SearchHit

WEIGHTS = (-3.74, 4.04, 15.44, -0.42)
"""Of 1, late, ahead and ln rank: `thalweg bench trust --fit`."""
LATE_ENOUGH = 0.5
FIRST = 10
"""The rows of which it is asked whether any is right; a search for relevance finds at least as many."""
LEVEL = 0.12
"""The score of the row that counts beside those that were found, chosen on stores of 3 to 15 memories."""
FLOOR = 0.63
"""The least probability that one of the first rows is right, below which an answer says `nothing_relevant`."""
LEAST = 1e-6
"""A probability is at least this, and at most 1 less this, where its logit is taken."""
DIGITS = 3


@dataclass(frozen=True, slots=True)
class Calibration:
    """How a probability is corrected: `σ(logit(p) / temperature + offset)`; 1 and 0 leave it as it is."""

    temperature: float = 1.0
    offset: float = 0.0

    def corrected(self, probability: float) -> float:
        """The probability, 0 to 1."""
        return sigmoid(logit(probability) / self.temperature + self.offset)


UNCHANGED = Calibration()


@dataclass(frozen=True, slots=True)
class Relevance:
    """Of each hit, in order, how probably it is right; None where that is not known. `nothing`: probably none is.

    `priors` are the same before what the namespace has taught.
    """

    priors: Sequence[float | None]
    values: Sequence[float | None]
    nothing: bool


def relevance_of(hits: Sequence[SearchHit], calibration: Calibration = UNCHANGED) -> Relevance:
    """What is known of all hits of a search, best first, at least FIRST where there are as many."""
    priors = [None if row is None else sigmoid(_weighed(row)) for row in evidence_of(hits)]
    values = [None if prior is None else calibration.corrected(prior) for prior in priors]
    return Relevance(priors, values, is_nothing(values))


def evidence_of(hits: Sequence[SearchHit]) -> list[tuple[float, float, float] | None]:
    """(late, ahead, ln rank) of each hit; None without token vectors."""
    rest = [hit.score for hit in hits[1:FIRST]]
    if len(rest) < FIRST - 1:
        rest.append(LEVEL)
    level = sum(rest) / len(rest)
    return [
        (min(hit.sides["late"][1], LATE_ENOUGH), hit.score - level, math.log(rank)) if "late" in hit.sides else None
        for rank, hit in enumerate(hits, 1)
    ]


def is_nothing(values: Sequence[float | None]) -> bool:
    """Whether probably none of the first rows is right. False while the relevance of one of them is not known."""
    missed = 1.0
    for value in values[:FIRST]:
        if value is None:
            return False
        missed *= 1 - value
    return 1 - missed < FLOOR


def shown_probability(value: float | None) -> float | None:
    """A probability as answers show it."""
    return None if value is None else round(value, DIGITS)


def _weighed(row: Sequence[float]) -> float:
    return WEIGHTS[0] + sum(weight * value for weight, value in zip(WEIGHTS[1:], row, strict=True))


def sigmoid(value: float) -> float:
    """1 / (1 + e^-x), of any finite number."""
    return 1 / (1 + math.exp(-value)) if value >= 0 else 1 - 1 / (1 + math.exp(value))


def logit(probability: float) -> float:
    """ln(p / (1 - p)), finite: p is kept LEAST away from 0 and 1."""
    kept = min(1 - LEAST, max(LEAST, probability))
    return math.log(kept / (1 - kept))
