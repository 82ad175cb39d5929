"""Weighted reciprocal-rank fusion of the sides of a hybrid search (Cormack et al. 2009, k = 60).

`score = 61 · Σ w / (60 + rank)`, ranks from 1, so that a hit that is first on all sides scores 1.0.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from datetime import datetime

from storage.search.records.hits import TIE_DIGITS

K = 60
WEIGHTS: Mapping[str, float] = {"vector": 0.5, "keyword": 0.3, "graph": 0.2}


def fuse(sides: Mapping[str, Sequence[int]], weights: Mapping[str, float] = WEIGHTS) -> dict[int, float]:
    """label -> score. `sides` are labels, best first; a side without a weight counts nothing."""
    scores: dict[int, float] = {}
    for side, labels in sides.items():
        for rank, label in enumerate(labels, start=1):
            scores[label] = scores.get(label, 0.0) + (K + 1) * weights.get(side, 0.0) / (K + rank)
    return scores


def imputed_order(nearest: Sequence[int], keywords: Sequence[int], embedded: Container[int]) -> list[int]:
    """The vector side and, among it by the order of the words, what words find that is not embedded yet.

    `nearest` and `keywords` are the labels of the vector and the keyword side, best first. What words put behind more
    than the vector side has found is left out.
    """
    places = [(place, True, label) for place, label in enumerate(nearest)]
    ahead = 0
    for label in keywords:
        if label in embedded:
            ahead += 1
        elif ahead <= len(nearest):
            places.append((ahead, False, label))
    places.sort(key=lambda entry: entry[:2])  # stable: of the same place in the order of the words
    return [label for _, _, label in places]


def ordered(scores: Mapping[int, float], described: Mapping[int, tuple[datetime, str]]) -> list[int]:
    """Labels, best first; tied scores newer first, then by record id. `described`: label -> (created_at, record_id)."""
    by_id = sorted(scores, key=lambda label: described[label][1])
    by_age = sorted(by_id, key=lambda label: described[label][0], reverse=True)
    return sorted(by_age, key=lambda label: round(scores[label], TIE_DIGITS), reverse=True)
