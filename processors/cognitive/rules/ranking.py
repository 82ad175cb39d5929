"""Reciprocal-rank fusion of the two sides of `hybrid_search`.

The word similarity behind its keyword side is here too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

K = 60
POOL = 3
"""Candidates of a side, times top_k."""
WEIGHTS: Mapping[str, float] = {"semantic": 0.7, "keyword": 0.3}
TRIGRAM_SIMILARITY = 0.3


class WeightsError(ValueError):
    """The weights do not sum to 1; the message says to what."""


@dataclass(frozen=True, slots=True)
class Fused:
    """A label's place. `score` is 61 · `rrf_score`, in (0, 1]; a rank is None when the side has not found it."""

    label: int
    rrf_score: float
    score: float
    semantic_rank: int | None
    keyword_rank: int | None


def checked_weights(given: Mapping[str, float] | None) -> dict[str, float]:
    """Both weights, a missing one by default. Raises WeightsError."""
    weights = {side: float((given or {}).get(side, default)) for side, default in WEIGHTS.items()}
    total = sum(weights.values())
    if abs(total - 1) > 1e-9:
        raise WeightsError(f"Weights must sum to 1.0, got {round(total, 9):g}")
    return weights


def fuse(semantic: Sequence[int], keyword: Sequence[int], weights: Mapping[str, float]) -> list[Fused]:
    """The union of both sides, labels best first; equal scores in the order in which the sides name them."""
    ranks = {
        "semantic": {label: rank for rank, label in enumerate(semantic, 1)},
        "keyword": {label: rank for rank, label in enumerate(keyword, 1)},
    }
    fused = []
    for label in dict.fromkeys([*semantic, *keyword]):
        raw = sum(weights[side] / (K + found[label]) for side, found in ranks.items() if label in found)
        fused.append(Fused(label, raw, (K + 1) * raw, ranks["semantic"].get(label), ranks["keyword"].get(label)))
    return sorted(fused, key=lambda each: -round(each.rrf_score, 15))


def trigrams(text: str) -> set[str]:
    """Trigrams of the casefolded words, each with two blanks before and one behind."""
    return {
        padded[at : at + 3]
        for word in text.casefold().split()
        for padded in [f"  {word} "]
        for at in range(len(padded) - 2)
    }


def word_similarity(query: str, text: str) -> float:
    """0 to 1: the share of the query's trigrams that the text has."""
    asked = trigrams(query)
    return len(asked & trigrams(text)) / len(asked) if asked else 0.0
