"""Which of the facts that a search for a prompt finds are given to the model without its asking.

    fit = late + 0.07 · rare

late     the share of the prompt's tokens that a fact meets, weighed by their rarity: the side `late` of a hit
rare     as how much the words count that the fact shares with the prompt, in words that one record alone has: its
         BM25 over the rarity of such a word. So the same floor holds in a store of five records and of a million

A fact is given where `rare` is MIN_RARE or more, and its fit reaches FLOOR and leads by LEAD what the session has: a
prompt that goes on with what is under way has it in sight. Without token vectors (an untrained model, none, or vectors
that are still being made) UNREAD stands for `late`, and words alone tell. docs/search.md says how the numbers were
chosen, and what they reach.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from processors.memory.rules.plain_kind import is_question
from storage.search.question import matter_of
from storage.search.records.clusters import canonical
from storage.search.words.analyzer import query_terms
from storage.search.words.bm25 import rarity

FLOOR = 0.6
LEAD = 0.1
RARE_SHARE = 0.07
UNREAD = 0.4
MIN_RARE = 1.0
"""In a language that the model was not trained on, the tokens of any two texts are near: words must agree."""
MIN_TERMS = 4
"""A prompt of fewer distinct terms ("yes", "continue", "commit this") says what to do next, and asks for no fact."""
MIN_QUESTION_TERMS = 2
"""The same of a prompt that is a question: "Which day do we deploy?" has two."""
MAX_FACTS = 5


@dataclass(frozen=True, slots=True)
class CandidateFact:
    """A hit of the search for the prompt. `late` and `bm25` are its raw scores, None where that side has none.

    `documents`: among how many records it was found, by which BM25 counts.
    """

    record_id: str
    text: str
    documents: int
    late: float | None = None
    bm25: float | None = None


@dataclass(frozen=True, slots=True)
class Fact:
    """A record that is worth giving. `confidence`: its fit, FLOOR to 1."""

    record_id: str
    confidence: float


def facts_above_floor(prompt: str, candidates: Sequence[CandidateFact], known: Sequence[CandidateFact]) -> list[Fact]:
    """At most MAX_FACTS of the candidates, the best first; of equal ones the one that was found first.

    `known`: hits of the same search that the session has already, because it said them or was given them.
    """
    if len(query_terms(matter_of(prompt))) < (MIN_QUESTION_TERMS if is_question(prompt) else MIN_TERMS):
        return []
    asked = canonical(prompt)  # the prompt itself, or the same one in another session, tells nothing
    in_sight, fits = (
        [(fit(one), one) for one in hits if canonical(one.text) != asked and rare(one) >= MIN_RARE]
        for hits in (known, candidates)
    )
    floor = max([FLOOR, *(found + LEAD for found, _ in in_sight)])
    best = sorted((pair for pair in fits if pair[0] >= floor), key=lambda pair: -pair[0])
    return [Fact(one.record_id, min(1.0, found)) for found, one in best[:MAX_FACTS]]


def fit(candidate: CandidateFact) -> float:
    """How surely a record is about what the prompt is about: 0 and more, seldom above 1."""
    late = UNREAD if candidate.late is None else candidate.late
    return late + RARE_SHARE * rare(candidate)


def rare(candidate: CandidateFact) -> float:
    """As how many words that one record alone has the words count that the record shares with the prompt."""
    return (candidate.bm25 or 0.0) / rarity(max(candidate.documents, 1), 1)
