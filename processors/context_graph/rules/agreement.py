"""How far the views agree on what a search returned: whether they point at the same memories.

Only views that compare what is said are asked. The others compare times or files, or are made of the first ones; of
them nothing is known, so that they are taken to agree as the asked ones do in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from processors.context_graph.rules.groups import VIEW_COUNT

SAYING = (0, 4, 5, 6, 8, 11, 12)
"""E1, E5, E6, E7, E9, E12, E13."""
SHARPNESS = 3.0
"""How much of a view's attention its best memories have."""
MOST_RESULTS = 10
"""Of an answer this many are compared, as an agent reads them."""
LEAST_RESULTS = 2
DECAY = 0.5
"""A recall counts this much of the one after it."""
_LEAST_SPREAD = 1e-6


def agreement(recalls: Sequence[np.ndarray]) -> np.ndarray:
    """[13, 13] in [0, 1], 1 on the diagonal: how far two views agree over these recalls, oldest first.

    recalls: (results, 13) alignments each, best first, NaN where a view says nothing. Without any recall all agree.
    """
    found = [one for one in map(_of_one, recalls) if one is not None]
    if not found:
        return np.ones((VIEW_COUNT, VIEW_COUNT))
    weights = DECAY ** np.arange(len(found))[::-1]
    mean: np.ndarray = np.average(np.stack(found), axis=0, weights=weights)
    return mean


def _of_one(alignments: np.ndarray) -> np.ndarray | None:
    """[13, 13] of one recall; None where fewer than two views tell its memories apart."""
    rows = alignments[:MOST_RESULTS]
    if len(rows) < LEAST_RESULTS:
        return None
    spread = rows.std(axis=0)
    asked = [view for view in SAYING if spread[view] > _LEAST_SPREAD]  # not those with NaN either
    if len(asked) < 2:
        return None
    scores = (rows[:, asked] - rows[:, asked].mean(axis=0)) / spread[asked]
    attention = np.exp(SHARPNESS * scores)
    roots = np.sqrt(attention / attention.sum(axis=0))
    pairs = np.clip(roots.T @ roots, 0.0, 1.0)
    found = np.full((VIEW_COUNT, VIEW_COUNT), pairs[np.triu_indices(len(asked), 1)].mean())
    found[np.ix_(asked, asked)] = pairs
    np.fill_diagonal(found, 1.0)
    return found
