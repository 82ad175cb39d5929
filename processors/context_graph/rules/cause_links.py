"""Which of two memories is a cause of the other, by what one of them states.

A statement names cause and effect in its memory's words. It links another memory where that one tells the stated cause
(then it is a cause of the memory that states) or the stated effect (then it is an effect of it). A memory tells what
its plain sentences say, and what it states as an effect; what it states as a cause it presupposes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from processors.context_graph.rules.causes import DENIES, Range, Reading, Statement, asks, read_causes
from storage.search.vectors.token_vectors import unit
from storage.search.words.analyzer import query_terms

LEAST_TERMS = 2
"""Words with content that a part needs to be told from others."""
LEAST_SIMILARITY = 0.5
KNOWN, REVERSED, UNKNOWN = 1.2, 0.8, 1.0
"""What the direction counts in `asymmetric_similarity`."""
_ASIDE = re.compile(
    r"(?<=\w)[\s,]+(?:(?:\w+\s+)?(?:hours?|days?|weeks?|months?|years?|long|just|shortly|right)\s+)?"
    r"(?:before|until|while|whilst|when|whenever|in\s+the\s+(?:same\s+)?(?:hour|day|week|month|year)\s+(?:in\s+which|when|that)|"
    r"on\s+the\s+(?:same\s+)?day\s+(?:on\s+which|when|that))\b.*",
    re.IGNORECASE | re.S,
)


@dataclass(frozen=True)
class CausalText:
    """A memory's text with its tokens: (n,) ids, (n, WIDTH) unit rows, (n,) weights, (n,) characters of their starts.

    `rarity`: of terms, 1 where it is not known.
    """

    memory_id: str
    text: str
    rows: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    rarity: Mapping[str, float]

    @cached_property
    def reading(self) -> Reading:
        return read_causes(self.text)

    @cached_property
    def told(self) -> list[Part]:
        """What the memory says came about: plain sentences, and effects."""
        return list(self._parts(is_cause=False))

    @cached_property
    def presupposed(self) -> list[Part]:
        """What it names as causes."""
        return list(self._parts(is_cause=True))

    def part(self, where: Range) -> Part:
        """A range of the text, as it is compared."""
        inside = (self.starts >= where[0]) & (self.starts < where[1])
        return Part(self.rows[inside], self.weights[inside], frozenset(query_terms(self.text[slice(*where)])))

    def _parts(self, *, is_cause: bool) -> Iterator[Part]:
        stating = [one for one in self.reading.statements if not one.is_denied]
        for where in self.reading.sentences:
            inside = [one for one in self.reading.statements if _within(one.cause, where) or _within(one.effect, where)]
            sentence = self.text[slice(*where)]
            if not inside and not is_cause and not DENIES.search(sentence) and not asks(sentence):
                aside = _ASIDE.search(sentence)
                yield self.part((where[0], where[0] + aside.start()) if aside else where)
            for one in inside:
                given = one.cause if is_cause else one.effect
                if one in stating and given is not None and _within(given, where):
                    yield self.part(given)


def _within(part: Range | None, sentence: Range) -> bool:
    return part is not None and sentence[0] <= part[0] < sentence[1]


@dataclass(frozen=True)
class Part:
    """Some words of a text: (k, WIDTH) unit rows and (k,) weights of its tokens, and its terms with content."""

    rows: np.ndarray
    weights: np.ndarray
    terms: frozenset[str]

    def is_told_apart(self) -> bool:
        return len(self.terms) >= LEAST_TERMS and len(self.rows) >= LEAST_TERMS


@dataclass(frozen=True, slots=True)
class Link:
    """A cause of an effect by a statement: memory ids, S from 0 to 1, and what states it."""

    cause_id: str
    effect_id: str
    similarity: float
    statement: Statement
    stated_by: str
    sentence: str


def asymmetric_similarity(cosine: float, direction: float, overlap: float) -> float:
    """S: how surely one text is about the other's cause. `overlap`: shared entities, 0 to 1."""
    return min(1.0, max(0.0, cosine * direction * (0.7 + 0.3 * overlap)))


def covered(part: Part, by: Part) -> float:
    """The weighted mean over a part's tokens of the best cosine among another's; 0 without tokens."""
    if not len(part.rows) or not len(by.rows):
        return 0.0
    best = (part.rows @ by.rows.T).max(1)
    total = float(part.weights.sum())
    return float(best @ part.weights) / total if total > 0 else 0.0


def overlap(part: Part, by: Part, rarity: Mapping[str, float]) -> float:
    """The share of a part's terms that the other has, by rarity."""
    total = sum(rarity.get(term, 1.0) for term in part.terms)
    return sum(rarity.get(term, 1.0) for term in part.terms & by.terms) / total if total > 0 else 0.0
