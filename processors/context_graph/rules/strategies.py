"""Search strategies: what thirteen alignments of a query with each memory make of its similarity.

Every strategy is a function of the alignments uᵢ of query and memory, view by view; purposes are compared as one term
beside them. All numbers of a memory are in [0, 1], and a view that is not available for a pair is left out of it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from processors.context_graph.rules.correlations import PAIRS, agreement
from processors.context_graph.rules.groups import GROUPS, MEMBERSHIP, VIEW_COUNT, group_alignments, weighted_mean

Strategy = Literal[
    "cosine",
    "euclidean",
    "synergy_weighted",
    "group_hierarchical",
    "cross_correlation_dominant",
    "tucker_compressed",
    "adaptive",
]
Scope = Literal["full", "purpose_vector_only", "cross_correlations_only", "group_alignments_only"]
STRATEGIES: tuple[Strategy, ...] = get_args(Strategy)
SCOPES: tuple[Scope, ...] = get_args(Scope)

VIEW_WEIGHTS = np.array([0.5, 0.1, 0.1, 0.1, 0.2, 3.0, 0.2, 0.5, 0.5, 0.2, 0.2, 3.0, 1.0])
"""How much each view, E1 to E13, counts: late interaction (E12) and rare word pieces (E6) find the most alone."""
PURPOSE, CORRELATIONS, GROUP_WEIGHT = 0.4, 0.35, 0.15
DIRECT = 1.0
"""What the views themselves weigh in `cosine`, beside the three weights that a caller may set."""
RANK = 4
"""Of the synergy matrix, in `tucker_compressed`."""
COHERENT = 0.85
"""`adaptive` compares by groups where the views agree on the best memory at least this much."""
_LEAST = 1e-3
_SCOPE_PART: Mapping[Scope, str] = {
    "purpose_vector_only": "purpose",
    "cross_correlations_only": "correlations",
    "group_alignments_only": "groups",
}


@dataclass(frozen=True)
class Weights:
    """What a caller may weigh. `views`: [13]; `groups`: the groups that count, None for all."""

    purpose: float = PURPOSE
    correlations: float = CORRELATIONS
    groups: float = GROUP_WEIGHT
    views: np.ndarray | None = None
    only: Collection[str] | None = None

    @property
    def of_views(self) -> np.ndarray:
        """[13]: 0 for a view of a group that does not count."""
        weights = VIEW_WEIGHTS if self.views is None else np.asarray(self.views, np.float64)
        return weights if self.only is None else np.where(MEMBERSHIP[self._chosen].any(0), weights, 0.0)

    @property
    def of_groups(self) -> np.ndarray:
        """[6]: what its views weigh together; 0 for a group that does not count."""
        return np.where(self._chosen, MEMBERSHIP @ self.of_views, 0.0)

    @property
    def _chosen(self) -> np.ndarray:
        return np.array([self.only is None or group in self.only for group in GROUPS])

    @property
    def are_default(self) -> bool:
        return (self.purpose, self.correlations, self.groups) == (PURPOSE, CORRELATIONS, GROUP_WEIGHT)


@dataclass(frozen=True)
class Scores:
    """What a search found of n memories; `used` is the strategy that gave the similarity. All [n] but `per_group`."""

    used: Strategy
    similarity: np.ndarray
    purpose: np.ndarray
    correlations: np.ndarray
    groups: np.ndarray
    per_group: np.ndarray
    """[n, 6], NaN for a group without a view that is available."""


def score(
    alignments: np.ndarray,
    purposes: np.ndarray,
    synergy: np.ndarray,
    *,
    strategy: Strategy = "adaptive",
    scope: Scope = "full",
    weights: Weights | None = None,
) -> Scores:
    """Score n memories by [n, 13] alignments and [n] similarities of their purposes with the query's."""
    chosen = weights or Weights()
    views, units = chosen.of_views, np.clip(alignments, 0.0, 1.0)  # NaN stays NaN
    per_group = group_alignments(units, views)
    agreed, pair_weights = agreement(units), _pair_weights(views, synergy)
    parts = {
        "direct": weighted_mean(units, views),
        "purpose": purposes,
        "correlations": weighted_mean(agreed, pair_weights),
        "groups": weighted_mean(per_group, chosen.of_groups),
        "within": weighted_mean(_within_groups(units, views), chosen.of_groups),
    }
    if not parts["correlations"].any():  # one view alone has no pair
        parts["correlations"] = parts["direct"]
    used = _adapted(units, views, parts["direct"], chosen) if strategy == "adaptive" else strategy
    if used == "euclidean":
        compared = {
            "direct": (units, views),
            "purpose": (purposes[:, None], np.ones(1)),
            "correlations": (agreed, pair_weights),
            "groups": (per_group, chosen.of_groups),
        }
        names = ("direct", "correlations", "groups") if scope == "full" else (_SCOPE_PART[scope],)
        similarity = nearness(sum(weighted_mean((1.0 - compared[name][0]) ** 2, compared[name][1]) for name in names))
    elif used == "tucker_compressed" and scope in ("full", "cross_correlations_only"):
        similarity = _compressed(units, views, synergy)
    elif scope == "full":
        similarity = _mixed(parts, _mix(used, chosen))
    else:
        similarity = parts[_SCOPE_PART[scope]]
    return Scores(
        used,
        np.clip(similarity, 0.0, 1.0),
        purposes,
        np.clip(parts["correlations"], 0.0, 1.0),
        np.clip(parts["groups"], 0.0, 1.0),
        per_group,
    )


def one_view(alignments: np.ndarray, view: int) -> np.ndarray:
    """[n]: the similarity by one view alone, counted from 0; 0 where it is not available."""
    return np.clip(np.nan_to_num(alignments[:, view]), 0.0, 1.0)


def purpose_similarity(query: np.ndarray, memories: np.ndarray, only: np.ndarray | None = None) -> np.ndarray:
    """[n]: cosines of [13] and [n, 13] purpose vectors, not below 0. `only`: [13], 0 for views that do not count."""
    counted = np.ones(VIEW_COUNT) if only is None else (np.asarray(only) > 0).astype(np.float64)
    one, others = np.nan_to_num(query) * counted, np.nan_to_num(memories) * counted
    lengths = np.linalg.norm(one) * np.linalg.norm(others, axis=1)
    products = others @ one
    return np.clip(np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0), 0.0, 1.0)


def nearness(squared_distance: np.ndarray | float) -> np.ndarray:
    """1 at no distance, falling towards 0."""
    return np.asarray(1.0 / (1.0 + np.sqrt(squared_distance)))


def _mix(strategy: Strategy, weights: Weights) -> dict[str, float]:
    return {
        "cosine": {
            "direct": DIRECT,
            "purpose": weights.purpose,
            "correlations": weights.correlations,
            "groups": weights.groups,
        },
        "synergy_weighted": {"direct": 0.4, "correlations": 0.6},
        "group_hierarchical": {"groups": 0.6, "within": 0.4},
        "cross_correlation_dominant": {"correlations": 0.75, "direct": 0.25},
    }[strategy]


def _mixed(parts: Mapping[str, np.ndarray], mix: Mapping[str, float]) -> np.ndarray:
    return np.asarray(sum(weight * parts[name] for name, weight in mix.items()) / sum(mix.values()))


def _pair_weights(views: np.ndarray, synergy: np.ndarray) -> np.ndarray:
    roots = np.sqrt(views)
    return np.asarray(roots[PAIRS[0]] * roots[PAIRS[1]] * synergy[PAIRS])


def _within_groups(units: np.ndarray, views: np.ndarray) -> np.ndarray:
    """[n, 6]: the geometric mean of each group's views, which is low where they disagree."""
    logs = group_alignments(np.log(np.maximum(units, _LEAST)), views)
    return np.asarray(np.exp(logs))


def _compressed(units: np.ndarray, views: np.ndarray, synergy: np.ndarray) -> np.ndarray:
    """How much of the leading combinations of views a memory has, as a share of what full alignment has.

    The core of the pairs' tensor in the RANK leading combinations of the synergy matrix.
    """
    values, vectors = np.linalg.eigh(synergy)
    leading = np.argsort(-np.abs(values), kind="stable")[:RANK]
    kernel = np.maximum((vectors[:, leading] * values[leading]) @ vectors[:, leading].T, 0.0)
    whole = np.where(np.isnan(units), 0.0, np.sqrt(views))
    had = np.nan_to_num(np.sqrt(units)) * np.sqrt(views)
    totals = np.einsum("ni,ij,nj->n", whole, kernel, whole)
    sums = np.einsum("ni,ij,nj->n", had, kernel, had)
    return np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)


def _adapted(units: np.ndarray, views: np.ndarray, direct: np.ndarray, weights: Weights) -> Strategy:
    """`cosine`, unless the views agree on the best memory: then their groups say it more plainly.

    Weights that a caller sets count in `cosine` alone, so that they choose it.
    """
    if not len(direct) or not weights.are_default:
        return "cosine"
    best = units[int(np.argmax(direct))]
    there = ~np.isnan(best) & (views > 0)
    coherence = 1.0 / (1.0 + float(best[there].std())) if there.any() else 0.0
    return "group_hierarchical" if coherence > COHERENT else "cosine"


def dominant_views(alignments: np.ndarray) -> np.ndarray:
    """[n]: the view, from 0, in which a memory stands out most from the others that were compared."""
    known = np.nan_to_num(alignments, nan=-1.0)
    usual = np.median(known, axis=0) if len(known) > 1 else np.zeros(VIEW_COUNT)
    return np.asarray(np.argmax(known - usual, axis=1))
