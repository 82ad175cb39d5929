"""How memories and turns share the candidates of a search of both.

Both together have as many as one of them would have alone: what is far behind the best of the other is not scored.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Share:
    """The part of a pool of candidates that is these indexes' own, 0 to 1, for each side."""

    vector: float = 1.0
    keyword: float = 1.0


WHOLE = Share()


def shares(pool: int, vector: tuple[np.ndarray, np.ndarray], keyword: tuple[np.ndarray, np.ndarray]) -> list[Share]:
    """The shares of two sets of indexes. Of each side what both found: (n,) and (m,) scores that can be compared."""
    sides = zip(_parts(pool, *vector), _parts(pool, *keyword), strict=True)
    return [Share(of_vector, of_keyword) for of_vector, of_keyword in sides]


def _parts(pool: int, one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """Which part of the `pool` best of both each has; all of its own where both together are no more."""
    if len(one) + len(other) <= pool:
        return 1.0, 1.0
    least = np.partition(np.concatenate([one, other]), -pool)[-pool]
    first, second = (min(1.0, float(np.count_nonzero(some >= least)) / pool) for some in (one, other))
    return first, second
