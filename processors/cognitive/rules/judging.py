"""Judges of relevance: two that need nothing but this machine, and the contract of any other."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from processors.cognitive.rules.agreement import snap
from processors.embedding.model import Embedder

SHARE, PHRASE = 0.7, 0.3
_WORD = re.compile(r"\w+")
_SENTENCE = re.compile(r"(?<=[.!?。！？])\s+|\n+")
LINES = ((0.1, 0.0), (0.3, 0.3), (0.45, 0.5), (0.6, 0.7), (0.8, 1.0))
"""Cosine -> score, straight lines between."""


@dataclass(frozen=True, slots=True)
class Document:
    """What is judged."""

    id: int
    content: str


@dataclass(frozen=True, slots=True)
class Cost:
    """What judging has cost; `cost_usd` is None when the price is not known."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def __add__(self, other: Cost) -> Cost:
        cost = None if self.cost_usd is None or other.cost_usd is None else self.cost_usd + other.cost_usd
        return Cost(self.input_tokens + other.input_tokens, self.output_tokens + other.output_tokens, cost)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A score a document, in order; None where there is no judgement, which is never replaced by a number."""

    scores: list[float | None]
    spent: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Corpus:
    """The number of insights, and for each word of the query how many of them contain it."""

    documents: int
    frequencies: Mapping[str, int]


class Judge(Protocol):
    """Scores each document for a query. `model` names it in what is stored. Never raises for a single document."""

    @property
    def model(self) -> str: ...

    async def judge(self, query: str, documents: Sequence[Document], corpus: Corpus) -> Judgement: ...


def words(text: str) -> list[str]:
    """The casefolded words of a text, in order."""
    return _WORD.findall(text.casefold())


def lexical_score(query: str, content: str, rarity: Mapping[str, float]) -> float:
    """Score a document by the query's words, 0 to 1: .7 · share + .3 · longest run / length.

    The share is that of the query's words in the document, weighted by IDF; the run is the most of them that stand
    there one after the other; the length is the query's, in words.
    """
    asked, said = words(query), words(content)
    if not asked:
        return 0.0
    weights = {word: rarity.get(word, 1.0) for word in dict.fromkeys(asked)}
    held = set(said)
    share = sum(weight for word, weight in weights.items() if word in held) / sum(weights.values())
    return SHARE * share + PHRASE * longest_run(asked, said) / len(asked)


def longest_run(asked: Sequence[str], said: Sequence[str]) -> int:
    """The most words of the query that stand in the document one after the other, as in the query."""
    best = 0
    previous = [0] * (len(said) + 1)
    for word in asked:
        current = [0] * (len(said) + 1)
        for place, other in enumerate(said, 1):
            if word == other:
                current[place] = previous[place - 1] + 1
                best = max(best, current[place])
        previous = current
    return best


def rarities(query: str, documents: Sequence[Document], corpus: Corpus) -> dict[str, float]:
    """IDF of the query's words over the insights and the documents at hand."""
    held = [set(words(document.content)) for document in documents]
    total = corpus.documents + len(documents)
    counts = {
        word: corpus.frequencies.get(word, 0) + sum(word in words_of for words_of in held) for word in set(words(query))
    }
    return {word: math.log(1 + (total - count + 0.5) / (count + 0.5)) for word, count in counts.items()}


def semantic_score(cosine: float) -> float:
    """A cosine on the judges' scale."""
    points, values = zip(*LINES, strict=True)
    return float(np.interp(cosine, points, values))


def sentences(text: str) -> list[str]:
    """The sentences of a text; the text itself when it has one."""
    return [part.strip() for part in _SENTENCE.split(text) if part.strip()] or [text]


class LexicalJudge:
    """By the query's words: how many of the rare ones the document has, and in which order."""

    model = "offline-lexical-1"

    async def judge(self, query: str, documents: Sequence[Document], corpus: Corpus) -> Judgement:
        rarity = rarities(query, documents, corpus)
        return Judgement([snap(lexical_score(query, document.content, rarity)) for document in documents])


class SemanticJudge:
    """By meaning: the highest cosine of the query with any sentence. Without a model there is no judgement."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder

    @property
    def model(self) -> str:
        return f"offline-semantic-1/{self._embedder.info.model_id if self._embedder else 'none'}"

    async def judge(self, query: str, documents: Sequence[Document], corpus: Corpus) -> Judgement:
        return await asyncio.to_thread(self._judge, query, documents)

    def _judge(self, query: str, documents: Sequence[Document]) -> Judgement:
        if self._embedder is None:
            return Judgement([None] * len(documents))
        cut = [sentences(document.content) for document in documents]
        info = self._embedder.info
        asked = [info.query_prefix + query, *(info.document_prefix + sentence for parts in cut for sentence in parts)]
        vectors = self._embedder.encode(asked)
        cosines = vectors[1:] @ vectors[0]
        scores: list[float | None] = []
        for parts in cut:
            scores.append(snap(semantic_score(float(cosines[: len(parts)].max()))))
            cosines = cosines[len(parts) :]
        return Judgement(scores)
