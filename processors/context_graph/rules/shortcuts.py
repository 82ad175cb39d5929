"""Shortcuts: paths that searches walk so often that an edge between their ends saves the way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import NamedTuple

from processors.context_graph.rules.edges import Edge, EdgeChange

MIN_HOPS, MIN_TRAVERSALS = 3, 5
MIN_CONFIDENCE = 0.7
SHORTCUT = "shortcut"


class Traversal(NamedTuple):
    """One walk of a path, in one request."""

    path: tuple[str, ...]
    at: datetime


@dataclass(frozen=True, slots=True)
class Shortcut:
    """A path that deserves an edge from its first memory to its last.

    `combined_weight`: the product of its edges' weights, `min_confidence`: the least of their confidences.
    """

    path: tuple[str, ...]
    traversals: int
    combined_weight: float
    min_confidence: float

    @property
    def hops(self) -> int:
        return len(self.path) - 1

    @property
    def change(self) -> EdgeChange:
        """What a dream makes of it."""
        return EdgeChange(self.path[0], self.path[-1], SHORTCUT, self.combined_weight, self.min_confidence)


def trodden(
    traversals: Iterable[Traversal], made_at: Mapping[tuple[str, str], datetime] | None = None
) -> dict[tuple[str, ...], int]:
    """How often each path of three hops or more was walked, of those that were walked five times or more.

    `made_at`: when a dream made the shortcut between these two ends last; walks up to then count no more.
    """
    made = made_at or {}
    counts = Counter(
        walk.path
        for walk in traversals
        if len(walk.path) > MIN_HOPS and ((ends := (walk.path[0], walk.path[-1])) not in made or walk.at > made[ends])
    )
    return {path: count for path, count in counts.items() if count >= MIN_TRAVERSALS and len(set(path)) == len(path)}


def candidates(
    traversals: Iterable[Traversal],
    edges: Iterable[Edge],
    min_confidence: float = MIN_CONFIDENCE,
    made_at: Mapping[tuple[str, str], datetime] | None = None,
) -> list[Shortcut]:
    """The trodden paths whose edges are all at least this sure, most walked first, then heaviest.

    Two memories in a row are joined by the heaviest of the edges between them, whatever its direction; a path with a
    gap, because an edge has gone, is none. `made_at`: as `trodden`.
    """
    walked = trodden(traversals, made_at)
    best: dict[frozenset[str], Edge] = {}
    for edge in edges if walked else ():
        pair = frozenset((edge.source_id, edge.target_id))
        if pair not in best or edge.weight > best[pair].weight:
            best[pair] = edge
    found = []
    for path, count in walked.items():
        steps = [best.get(frozenset(pair)) for pair in pairwise(path)]
        known = [step for step in steps if step is not None]
        if len(known) == len(steps):
            weight, surety = math.prod(step.weight for step in known), min(step.confidence for step in known)
            if surety >= min_confidence:
                found.append(Shortcut(path, count, weight, surety))
    return sorted(found, key=lambda one: (-one.traversals, -one.combined_weight, one.path))
