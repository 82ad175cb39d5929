"""BM25 (Robertson & Zaragoza 2009), as Lucene and tantivy compute it."""

from __future__ import annotations

import math

K1, B = 1.2, 0.75


def bm25(frequency: int, length: int, mean: float, documents: int, having: int) -> float:
    """One term's share of a document's score.

    The term is `frequency` times in a document of this `length`; `mean` is the mean length of all `documents`, of which
    this many have the term.
    """
    return rarity(documents, having) * frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / max(mean, 1.0)))


def rarity(documents: int, having: int) -> float:
    """The inverse document frequency of a term that `having` of all documents have."""
    return math.log(1 + (documents - min(having, documents) + 0.5) / (having + 0.5))
