"""Fusion: how much each view has in one vector of a memory, and how far that vector can be trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from processors.context_graph.rules.correlations import PAIR_COUNT, PAIRS, correlations
from processors.context_graph.rules.groups import GROUPS, MEMBERSHIP, VIEW_COUNT, group_alignments
from processors.context_graph.rules.synergy import HIGH
from processors.context_graph.rules.tucker import Tucker

METHODS = ("linear", "attention", "gated", "hierarchical", "tucker")
ACTIVE = 0.1
"""A view whose alignment is above it is active."""
LOW_CONFIDENCE = 0.3
_CONFIDENCE_WEIGHTS = {"purpose_vector": 0.3, "cross_correlations": 0.25, "groups": 0.25, "synergy": 0.2}


@dataclass(frozen=True)
class Trust:
    """How far a fusion can be trusted, 0 to 1, and the four parts of it."""

    value: float
    parts: Mapping[str, float]
    active: int


def trust(alignments: np.ndarray, synergy: np.ndarray) -> Trust:
    """Of the thirteen alignments with the purpose; NaN counts as no alignment."""
    values, parts, active = _trusts(alignments[None], synergy)
    return Trust(float(values[0]), {name: float(part[0]) for name, part in parts.items()}, int(active[0]))


def confidences(alignments: np.ndarray, synergy: np.ndarray) -> np.ndarray:
    """[n, 13] -> [n]: the values of the trust in each."""
    return _trusts(alignments, synergy)[0]


def _trusts(alignments: np.ndarray, synergy: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray], np.ndarray]:
    """[n, 13] -> [n] values, their parts, and how many views are active."""
    aligned = np.clip(np.nan_to_num(alignments), 0.0, 1.0)
    active = (aligned > ACTIVE).sum(1)
    strong = synergy[PAIRS] >= HIGH
    products = (aligned[:, PAIRS[0]] * aligned[:, PAIRS[1]])[:, strong]
    parts = {
        "purpose_vector": aligned.mean(1),
        "cross_correlations": np.count_nonzero(correlations(aligned, synergy), axis=1) / PAIR_COUNT,
        "groups": 1.0 / (1.0 + np.nan_to_num(group_alignments(aligned)).std(1)),
        "synergy": products.mean(1) if strong.any() else np.zeros(len(aligned)),
    }
    whole = np.sum([_CONFIDENCE_WEIGHTS[name] * value for name, value in parts.items()], axis=0)
    return whole * np.sqrt(active / VIEW_COUNT), parts, active


def shares(
    method: str,
    weights: np.ndarray,
    alignments: np.ndarray,
    synergy: np.ndarray | None,
    priorities: Mapping[str, float],
    tucker: Tucker | None = None,
) -> np.ndarray:
    """[13], sum 1: how much each view has in the fused vector. `method`: one of METHODS.

    `synergy` None: the views are weighed without it. `tucker`: needed for the method of that name. Where no view has
    anything, the weights themselves are the answer.
    """
    aligned = np.clip(np.nan_to_num(alignments), 0.0, 1.0)
    if method == "linear":
        raw = weights * aligned
    elif method == "attention":
        raw = weights * np.exp(aligned * (1.0 if synergy is None else _row_means(synergy)))
    elif method == "gated":
        raw = weights / (1.0 + np.exp(-4.0 * (aligned - 0.5)))
    elif method == "hierarchical":
        raw = _by_group(weights * aligned, priorities)
    else:
        if tucker is None:
            raise ValueError("the method tucker needs a decomposition")
        raw = weights * (tucker.views**2 @ tucker.strengths**2)
    if synergy is not None and method != "attention":  # attention has it inside
        raw = raw * _support(raw, synergy)
    total = raw.sum()
    return np.asarray(raw / total if total > 0 else weights / weights.sum())


def fused(parts: np.ndarray, views: np.ndarray) -> np.ndarray:
    """[256], unit length: the views in the common space, each with its share; zeros where they cancel out."""
    vector = parts @ views
    length = np.linalg.norm(vector)
    return np.asarray(vector / length if length > 0 else vector)


def _row_means(synergy: np.ndarray) -> np.ndarray:
    return (synergy.sum(1) - np.diag(synergy)) / (VIEW_COUNT - 1)


def _by_group(raw: np.ndarray, priorities: Mapping[str, float]) -> np.ndarray:
    """Each group has its priority, and shares it among its views; a view of two groups has a part of both."""
    order = np.array([priorities[group] for group in GROUPS])
    totals = MEMBERSHIP @ raw
    scale = np.divide(order, totals, out=np.zeros_like(order), where=totals > 0)
    return np.asarray(raw * (scale @ MEMBERSHIP))


def _support(raw: np.ndarray, synergy: np.ndarray) -> np.ndarray:
    """How far the other views that have something back each view; 1 for a view that stands alone."""
    others = raw.sum() - raw
    backed = synergy @ raw - np.diag(synergy) * raw
    return np.divide(backed, others, out=np.ones_like(raw), where=others > 1e-12)
