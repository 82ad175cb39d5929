"""Judges which of a search's hits are worth to be given with a prompt that did not ask for them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

MOST = 5
MIN_WORDS = 3
"""A prompt of fewer words says too little to be compared: `yes`, `commit this`."""
MIN_COSINE = 0.5
_WORD = re.compile(r"[^\W\d_]{2,}")


@dataclass(frozen=True, slots=True)
class ScoredHit:
    """A hit, with what the sides of the search say of it; None where a side did not find it.

    `cosine`: of the prompt's vector and the record's, -1 to 1. `late`: weighted mean of the best cosines of the
    prompt's tokens. `bm25`: what its words score.
    """

    record_id: str
    text: str
    cosine: float | None = None
    late: float | None = None
    bm25: float | None = None


@dataclass(frozen=True, slots=True)
class Injected:
    """A record that is given, and how sure it is that it helps: 0 to 1."""

    record_id: str
    confidence: float


def chosen(prompt: str, hits: Sequence[ScoredHit], *, trained: bool) -> list[Injected]:
    """At most five records above the floor, the surest first.

        Without a trained model none: nothing says how near a text is.
    `hits`: best first.
    """
    if not trained or len(_WORD.findall(prompt)) < MIN_WORDS:
        return []
    near = [Injected(one.record_id, one.cosine) for one in hits if one.cosine is not None and one.cosine >= MIN_COSINE]
    return sorted(near, key=lambda one: -one.confidence)[:MOST]
