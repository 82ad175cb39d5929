"""Weighted reciprocal-rank fusion of the sides of a hybrid search (Cormack et al. 2009, k = 60).

`score = 61 · Σ w / (60 + rank)`, ranks from 1, so that a hit that is first on all sides scores 1.0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

K = 60
WEIGHTS: Mapping[str, float] = {"vector": 0.5, "keyword": 0.3, "graph": 0.2}


def fuse(sides: Mapping[str, Sequence[int]], weights: Mapping[str, float] = WEIGHTS) -> dict[int, float]:
    """label -> score. `sides` are labels, best first; a side without a weight counts nothing."""
    scores: dict[int, float] = {}
    for side, labels in sides.items():
        for rank, label in enumerate(labels, start=1):
            scores[label] = scores.get(label, 0.0) + (K + 1) * weights.get(side, 0.0) / (K + rank)
    return scores


def ordered(scores: Mapping[int, float], described: Mapping[int, tuple[datetime, str]]) -> list[int]:
    """Labels, best first; equal scores newer first, then by record id. `described`: label -> (created_at, record_id)."""
    by_id = sorted(scores, key=lambda label: described[label][1])
    by_age = sorted(by_id, key=lambda label: described[label][0], reverse=True)
    # sums in another order differ in the last bits: a tie is a tie to 12 digits
    return sorted(by_age, key=lambda label: round(scores[label], 12), reverse=True)
