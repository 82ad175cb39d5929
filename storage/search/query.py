"""What is asked of a search, as one value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from storage.search.question import matter_of
from storage.search.records.filter import Filter
from storage.search.vectors.token_vectors import Tokens

MIN_COSINE = 0.30
"""Below it the vector side finds nothing, where ranks are fused."""
MIN_COSINE_RANKED = 0.15
"""Below it the vector side finds nothing, where the cosine itself counts."""
MIN_POOL = 50


@dataclass(frozen=True, slots=True, eq=False)
class Query:
    """A text with its (dim,) unit vector and its tokens, the filter, and how many hits are wanted.

    Without a vector the search is by words, dates and relations only. `space`: the one that vector and tokens are of,
    when the live one may have changed since. `pool`: candidates of each side, three times the limit by default.
    `sessions`: all records of this many sessions, of those that the sides meet first, are candidates too. `weights` of
    the sides vector, keyword and graph: the sides' ranks are fused with these. `min_cosine`: the vector side's floor.
    `distinct`: of the records that state the same, one stands for all. `with_turns`: turns of captured sessions too.
    `candidates`: labels that are candidates
    whether a side finds them or not.
    """

    text: str
    vector: np.ndarray | None
    filter: Filter
    limit: int
    tokens: Tokens | None = None
    space: str | None = None
    pool: int | None = None
    sessions: int = 0
    weights: Mapping[str, float] | None = None
    min_cosine: float | None = None
    distinct: bool = True
    with_turns: bool = False
    candidates: Sequence[int] = ()

    @property
    def matter(self) -> str:
        """What the text is about (`question`): what words, vector and tokens are of."""
        return matter_of(self.text)

    @property
    def pool_size(self) -> int:
        """Candidates of each side."""
        return self.pool or pool_of(self.limit)


def pool_of(limit: int) -> int:
    """How many candidates each side brings, so that `limit` of them are good ones."""
    return max(3 * limit, MIN_POOL)
