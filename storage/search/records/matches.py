"""Matches: what one side of a search finds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from storage.search.records.label_map import ABSENT, places_in

Matches = list[tuple[int, float]]
"""(label, score), best first."""


class DocumentMatches(NamedTuple):
    """The documents that one side finds. `fits`: document -> the label of its best passage, or its own."""

    matches: Matches
    fits: dict[int, int]


def scores_of(labels: np.ndarray, matches: Sequence[tuple[int, float]], default: float) -> np.ndarray:
    """(n,) the score of each of the sorted labels, `default` where the matches lack it."""
    values = np.full(len(labels), default)
    if matches:
        places = places_in(labels, np.array([label for label, _ in matches], np.int64))
        is_there = places != ABSENT
        values[places[is_there]] = np.array([score for _, score in matches])[is_there]
    return values


def best_first(labels: np.ndarray, scores: np.ndarray, chosen: np.ndarray) -> Matches:
    """The chosen of (n,) labels with their (n,) scores as matches; `chosen` is (n,) bool."""
    labels, scores = labels[chosen], scores[chosen]
    order = np.lexsort((labels, -scores))
    return list(zip(labels[order].tolist(), scores[order].tolist(), strict=True))
