"""How much a place among the results counts for what was recalled together."""

from __future__ import annotations

FLATNESS = 5.0


def rank_strength(rank: int) -> float:
    """1 of the first result, falling slowly towards 0: 0.4 of the tenth."""
    return (FLATNESS + 1) / (FLATNESS + rank)
