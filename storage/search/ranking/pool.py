"""How memories and turns share the candidates of a search of both.

Both together have as many as one of them would have alone: what is far behind the best of the other is not scored.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a pool of candidates that is these indexes' own, 0 to 1, for each side."""

    vector: float = 1.0
    keyword: float = 1.0


WHOLE = Share()


def shares(pool: int, vector: Sequence[np.ndarray], keyword: Sequence[np.ndarray]) -> list[Share]:
    """The share of each set of indexes. `vector`, `keyword`: what each set found, as scores that can be compared."""
    return [Share(*parts) for parts in zip(_parts(pool, vector), _parts(pool, keyword), strict=True)]


def _parts(pool: int, found: Sequence[np.ndarray]) -> list[float]:
    """Each set has a part of the `pool` best scores. Where all scores fit, each set keeps its own."""
    scores = np.concatenate(found)
    if len(scores) <= pool:
        return [1.0] * len(found)
    least = np.partition(scores, -pool)[-pool]
    return [min(1.0, float(np.count_nonzero(some >= least)) / pool) for some in found]
