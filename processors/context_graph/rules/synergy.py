"""The synergy matrix: how much two views that agree say together, and how judged results change it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from processors.context_graph.rules.correlations import PAIRS
from processors.context_graph.rules.groups import VIEW_COUNT

UpdateScope = Literal["all_pairs", "high_synergy_only", "contributing_pairs"]
UPDATE_SCOPES: tuple[UpdateScope, ...] = get_args(UpdateScope)
FEEDBACK = {"relevant": 1.0, "not_relevant": 0.0, "partially_relevant": 0.5}
"""What a judgement is as a score, where its caller gives none."""
RATE = 0.01
"""How far one judgement goes, where its caller does not say."""
IRRELEVANT = 0.2
"""How far an irrelevant result goes beside a relevant one: of those that a search returns most are irrelevant."""
LEAST, MOST = 0.05, 0.99
"""What is learned stays between them."""
CONTRIBUTING, HIGH = 0.3, 0.7
LARGEST_CHANGES = 5

INITIAL = np.array(
    [
        [1.0, 0.6, 0.3, 0.3, 0.6, 0.6, 0.6, 0.3, 0.9, 0.6, 0.9, 0.9, 0.6],
        [0.6, 1.0, 0.9, 0.9, 0.6, 0.3, 0.3, 0.6, 0.3, 0.9, 0.6, 0.6, 0.3],
        [0.3, 0.9, 1.0, 0.9, 0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.6, 0.3, 0.3],
        [0.3, 0.9, 0.9, 1.0, 0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.6, 0.3, 0.3],
        [0.6, 0.6, 0.9, 0.9, 1.0, 0.3, 0.9, 0.3, 0.6, 0.3, 0.9, 0.6, 0.3],
        [0.6, 0.3, 0.3, 0.3, 0.3, 1.0, 0.9, 0.3, 0.3, 0.3, 0.9, 0.6, 0.9],
        [0.6, 0.3, 0.3, 0.3, 0.9, 0.9, 1.0, 0.9, 0.6, 0.3, 0.6, 0.6, 0.9],
        [0.3, 0.6, 0.3, 0.3, 0.3, 0.3, 0.9, 1.0, 0.6, 0.3, 0.3, 0.3, 0.3],
        [0.9, 0.3, 0.3, 0.3, 0.6, 0.3, 0.6, 0.6, 1.0, 0.6, 0.3, 0.9, 0.3],
        [0.6, 0.9, 0.3, 0.3, 0.3, 0.3, 0.3, 0.3, 0.6, 1.0, 0.3, 0.6, 0.3],
        [0.9, 0.6, 0.6, 0.6, 0.9, 0.9, 0.6, 0.3, 0.3, 0.3, 1.0, 0.9, 0.9],
        [0.9, 0.6, 0.3, 0.3, 0.6, 0.6, 0.6, 0.3, 0.9, 0.6, 0.9, 1.0, 0.6],
        [0.6, 0.3, 0.3, 0.3, 0.3, 0.9, 0.9, 0.3, 0.3, 0.3, 0.9, 0.6, 1.0],
    ]
)
"""Symmetric, diagonal 1; what a namespace starts with."""


@dataclass(frozen=True)
class SynergyUpdate:
    """What one judgement made of the matrix."""

    matrix: np.ndarray
    pairs_updated: int
    mean_before: float
    mean_after: float
    frobenius_delta: float
    largest_changes: list[dict[str, object]]


def from_pairs(pairs: Sequence[float] | np.ndarray) -> np.ndarray:
    """The matrix that has these 78 numbers above its diagonal."""
    matrix = np.eye(VIEW_COUNT)
    matrix[PAIRS] = np.asarray(pairs, np.float64)
    matrix.T[PAIRS] = matrix[PAIRS]
    return matrix


def contributions(alignments: np.ndarray) -> np.ndarray:
    """[78]: how far both views of a pair found the judged result. A view that was not available contributes nothing."""
    positive = np.sqrt(np.maximum(np.nan_to_num(alignments), 0.0))
    return positive[PAIRS[0]] * positive[PAIRS[1]]


def learn(matrix: np.ndarray, alignments: np.ndarray, score: float, rate: float, scope: UpdateScope) -> SynergyUpdate:
    """Raise the pairs that found a relevant result more than most pairs, and lower the others.

    An irrelevant one does the reverse. Only how pairs stand to each other says something, so that what all have in
    common is taken off: the mean of the pairs in scope. `alignments`: the thirteen of query and result. `score`: how
    relevant, 0 to 1; 0.5 changes nothing.
    """
    before, contributed = matrix[PAIRS], contributions(alignments)
    chosen = {
        "contributing_pairs": contributed > CONTRIBUTING,
        "high_synergy_only": before >= HIGH,
        "all_pairs": np.ones(len(before), bool),
    }[scope]
    towards = 2 * (score - 0.5)
    towards *= 1.0 if towards > 0 else IRRELEVANT
    usual = contributed[chosen].mean() if chosen.any() else 0.0
    step = np.where(chosen, rate * towards * (contributed - usual), 0.0)
    after = np.where(step == 0, before, np.clip(before + step, LEAST, MOST))
    changes = np.abs(after - before)
    largest = [int(place) for place in np.argsort(-changes, kind="stable")[:LARGEST_CHANGES] if changes[place] > 0]
    learned = from_pairs(after)
    return SynergyUpdate(
        matrix=learned,
        pairs_updated=int(np.count_nonzero(changes)),
        mean_before=round(float(before.mean()), 9),
        mean_after=round(float(after.mean()), 9),
        frobenius_delta=round(float(np.linalg.norm(learned - matrix)), 9),
        largest_changes=[
            {
                "pair": [f"E{PAIRS[0][place] + 1}", f"E{PAIRS[1][place] + 1}"],
                "old": round(float(before[place]), 9),
                "new": round(float(after[place]), 9),
            }
            for place in largest
        ],
    )
