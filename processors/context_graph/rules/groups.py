"""The six groups of views, and the alignment of a group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

VIEW_COUNT = 13
GROUPS: Mapping[str, tuple[int, ...]] = {
    "factual": (0, 10),
    "temporal": (1, 2, 3),
    "causal": (4,),
    "relational": (7, 10),
    "qualitative": (8, 9, 11),
    "implementation": (5, 6, 12),
}
"""Group -> places of its views, E1 is 0. E11 states facts as well as relations, so that it is in two groups."""
MEMBERSHIP = np.array([[view in members for view in range(VIEW_COUNT)] for members in GROUPS.values()], np.float64)
"""[6, 13]: 1 where a view belongs to a group."""


def weighted_mean(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of the last axis without what is NaN; 0 where nothing is left to weigh."""
    present = np.where(np.isnan(values), 0.0, weights)
    total = present.sum(-1)
    return np.divide((np.nan_to_num(values) * present).sum(-1), total, out=np.zeros_like(total), where=total > 0)


def group_alignments(alignments: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """[…, 13] -> […, 6]: the weighted mean of each group's views; NaN without any that is available."""
    shares = np.ones(VIEW_COUNT) if weights is None else np.asarray(weights, np.float64)
    present = np.where(np.isnan(alignments), 0.0, shares)
    totals = present @ MEMBERSHIP.T
    sums = (np.nan_to_num(alignments) * present) @ MEMBERSHIP.T
    return np.divide(sums, totals, out=np.full_like(totals, np.nan), where=totals > 0)


def named(groups: np.ndarray) -> dict[str, float]:
    """The six numbers by name; 0 for a group without a view that is available."""
    return {name: float(value) for name, value in zip(GROUPS, np.nan_to_num(groups), strict=True)}
