"""Which of two memories is a cause of the other, by what one of them states.

A statement names cause and effect in its memory's words. It links another memory where that one tells the stated cause
(then it is a cause of the memory that states) or the stated effect (then it is an effect of it). A memory tells what
its plain sentences say, and what it states as an effect; what it states as a cause it presupposes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from processors.context_graph.rules.causes import CausalStatement, Range, Reading, asks, denies, read_causes
from storage.search.words.analyzer import query_terms

LEAST_TERMS = 2
"""Words with content that a part has in common with what tells it."""
LEAST_RARITY = 1.2
"""How rare these are together, in shares of a word that one memory alone has: names that all have are little."""
LEAST_OF_CAUSE, LEAST_OF_EFFECT = 0.65, 0.65
"""S from which another memory tells a stated cause, a stated effect (`thalweg bench causes`)."""
LEAST_OF_WORD = 0.3
"""The cosine that each word of a part has at least with one of what tells it: else it is told something else of it."""
NEARLY = 0.95
"""Of the memories that tell a part, those count whose S is this share of the best one's."""
KNOWN, REVERSED, UNKNOWN = 1.2, 0.8, 1.0
"""What the direction counts in `asymmetric_similarity`."""
MAX_SENTENCE = 600
"""Characters of a sentence that are kept as evidence."""
DENIED = 1.0
"""The confidence with which a link is taken back: it is surer than what made it, and leaves a weight of 0."""
_ASIDE = re.compile(
    r"(?<=\w)[\s,]+(?:(?:a|one|two|some|\d+)\s+)?(?:\w+\s+)?"
    r"(?:(?:hours?|days?|weeks?|months?|years?|long|just|shortly)\s+)?"
    r"(?P<before>before)\b.*|"
    r"(?<=\w)[\s,]+(?:until|while|whilst|when|whenever|in\s+the\s+(?:same\s+)?(?:hour|day|week|month|year)\s+"
    r"(?:in\s+which|when|that)|on\s+the\s+(?:same\s+)?day\s+(?:on\s+which|when|that))\b.*",
    re.IGNORECASE | re.S,
)


@dataclass(frozen=True, slots=True)
class Part:
    """Some words of a text: its terms with content, and (k, WIDTH) unit rows and (k,) weights of tokens."""

    rows: np.ndarray
    weights: np.ndarray
    terms: frozenset[str]


@dataclass(frozen=True, slots=True)
class CausalClaim:
    """A part of a statement that another memory may tell. `other`: the statement's other part, where it has one."""

    statement: CausalStatement
    is_cause: bool
    where: Range
    part: Part
    other: Part | None


@dataclass(frozen=True)
class CausalText:
    """A memory's text and tokens.

    (n,) `starts`, the characters at which they begin; (n, WIDTH) unit rows; (n,) weights."""

    memory_id: str
    text: str
    starts: np.ndarray
    rows: np.ndarray
    weights: np.ndarray

    @cached_property
    def reading(self) -> Reading:
        return read_causes(self.text)

    @cached_property
    def effects(self) -> list[Part]:
        """What it states as effects."""
        return [self.part(one.effect) for one in self._stated if one.effect is not None]

    @cached_property
    def causes(self) -> list[Part]:
        """What it states as causes."""
        return [self.part(one.cause) for one in self._stated if one.cause is not None]

    @cached_property
    def plain(self) -> list[tuple[Part, bool]]:
        """What else it says, without what its sentences say in passing; and whether that was before something."""
        parts = []
        for where in self.reading.sentences:
            sentence = self.text[slice(*where)]
            if self._is_stating(where) or denies(sentence) or asks(sentence):
                continue
            aside = _ASIDE.search(sentence)
            kept = where if aside is None else (where[0], where[0] + aside.start())
            parts.append((self.part(kept), aside is not None and bool(aside["before"])))
        return parts

    @cached_property
    def claims(self) -> list[CausalClaim]:
        """The parts of its statements that have enough words to be found in other memories."""
        claims = []
        for one in self._stated:
            parts = {where: self.part(where) for where in (one.cause, one.effect) if where is not None}
            for is_cause, where, other in ((True, one.cause, one.effect), (False, one.effect, one.cause)):
                if where is not None and len(parts[where].terms) >= LEAST_TERMS and len(parts[where].rows):
                    claims.append(
                        CausalClaim(one, is_cause, where, parts[where], None if other is None else parts[other])
                    )
        return claims

    @property
    def denials(self) -> list[Range]:
        """The sentences that deny a cause."""
        denied = [one.sentence for one in self.reading.statements if one.is_denied]
        return denied + [where for where in self.reading.sentences if denies(self.text[slice(*where)])]

    @property
    def _stated(self) -> list[CausalStatement]:
        return [one for one in self.reading.statements if not one.is_denied]

    def _is_stating(self, sentence: Range) -> bool:
        """Whether a part of a statement is in this sentence."""
        parts = [part for one in self.reading.statements for part in (one.cause, one.effect) if part is not None]
        return any(sentence[0] <= part[0] < sentence[1] for part in parts)

    def part(self, where: Range) -> Part:
        """A range of the text, as it is compared."""
        first, last = np.searchsorted(self.starts, where)
        terms = frozenset(query_terms(self.text[slice(*where)]))
        return Part(self.rows[first:last], self.weights[first:last], terms)


@dataclass(frozen=True, slots=True)
class CausalLink:
    """A cause and an effect, as memory ids. `similarity`: S, 0 where `evidence` denies it; `confidence`: 0 to 1.

    `evidence`: the sentence that states it, its marker, and the memory that it is in.
    """

    cause_id: str
    effect_id: str
    similarity: float
    confidence: float
    evidence: Mapping[str, str]


def asymmetric_similarity(cosine: float, direction: float, overlap: float) -> float:
    """S of two texts, 0 to 1: how much the one is about the other's cause. `overlap`: shared entities, 0 to 1."""
    return min(1.0, max(0.0, cosine * direction * (0.7 + 0.3 * overlap)))


def similarity(part: Part, by: Part, rarity: Mapping[str, float]) -> float:
    """S of a stated part and what tells it.

    The cosine is the weighted mean of the best ones of its tokens, the overlap that of its terms.
    `rarity`: of terms, from 0 to 1; tokens have theirs as weights. 0 where both have too little in common.
    """
    shared = part.terms & by.terms
    if (
        len(shared) < LEAST_TERMS
        or sum(rarity.get(term, 1.0) for term in shared) < LEAST_RARITY
        or not len(part.rows)
        or not len(by.rows)
    ):
        return 0.0
    total, all_terms = float(part.weights.sum()), sum(rarity.get(term, 1.0) for term in part.terms)
    if total <= 0 or all_terms <= 0:
        return 0.0
    best = (part.rows @ by.rows.T).max(1)
    if float(best.min()) < LEAST_OF_WORD:
        return 0.0
    cosine = float(best @ part.weights) / total
    overlap = sum(rarity.get(term, 1.0) for term in shared) / all_terms
    return asymmetric_similarity(cosine, KNOWN, overlap)


def tells(claim: CausalClaim, text: CausalText, rarity: Mapping[str, float]) -> float:
    """S of a claim and a memory that tells it; 0 where it tells the other part, or in the other role.

    A cause is told by what a memory says, or states as an effect; an effect by what it says, unless that was before
    something, or states as a cause.
    """
    plain = [part for part, is_before in text.plain if claim.is_cause or not is_before]
    same, opposite = (text.effects, text.causes) if claim.is_cause else (text.causes, text.effects)
    best = _best(claim.part, [*plain, *same], rarity)
    if best < (LEAST_OF_CAUSE if claim.is_cause else LEAST_OF_EFFECT):
        return 0.0
    rather = _best(claim.part, opposite, rarity)
    if claim.other is not None:
        rather = max(rather, _best(claim.other, [*plain, *same], rarity))
    return best if best > rather else 0.0


def _best(part: Part, by: Sequence[Part], rarity: Mapping[str, float]) -> float:
    return max((similarity(part, one, rarity) for one in by), default=0.0)


def told_by(
    claim: CausalClaim, others: Sequence[CausalText], rarity: Mapping[str, float]
) -> list[tuple[CausalText, float]]:
    """The memories that tell a claim, with their S: 0 of one that another one surpasses."""
    found = [(one, value) for one in others if (value := tells(claim, one, rarity)) > 0]
    best = max((value for _, value in found), default=0.0)
    return [(one, value if value >= NEARLY * best else 0.0) for one, value in found]


def link(stating: CausalText, claim: CausalClaim, other: CausalText, value: float) -> CausalLink:
    """The link that a claim of one memory makes with another one."""
    ends = (other.memory_id, stating.memory_id) if claim.is_cause else (stating.memory_id, other.memory_id)
    statement = claim.statement
    return CausalLink(*ends, value, statement.confidence, evidence(stating, statement.sentence, statement.marker))


def surpassed(one: CausalLink) -> CausalLink:
    """A link of a part that another memory has turned out to tell better: it has no weight any more."""
    return replace(one, similarity=0.0, confidence=DENIED)


def evidence(text: CausalText, sentence: Range, marker: str) -> dict[str, str]:
    """What states a cause: its memory, the sentence, the marker."""
    return {"memory_id": text.memory_id, "sentence": text.text[slice(*sentence)][:MAX_SENTENCE], "marker": marker}


def is_denied(
    stating: CausalText, statement: CausalStatement, by: CausalText, rarity: Mapping[str, float]
) -> Range | None:
    """The sentence of another memory that denies a statement: both of its parts are in it. None where there is none."""
    if statement.cause is None or statement.effect is None:
        return None
    cause, effect = stating.part(statement.cause), stating.part(statement.effect)
    for where in by.denials:
        said = by.part(where)
        if similarity(cause, said, rarity) >= LEAST_OF_CAUSE and similarity(effect, said, rarity) >= LEAST_OF_CAUSE:
            return where
    return None
