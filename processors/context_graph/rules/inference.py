"""Paths of causes: what follows from a memory, what it follows from, and which cause is the likeliest.

An edge goes from cause to effect. A path is as strong as the product of its weights, times DECAY for each edge after
the first, and as sure as its least sure edge. Of several paths between two memories the strongest counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from processors.context_graph.rules.edges import Edge

MAX_HOPS, DECAY, MIN_CONFIDENCE = 5, 0.9, 0.5
STRONG = 0.7
LEAST_BRIDGE = 0.5
"""The strength from which a path bridges."""


@dataclass(frozen=True, slots=True)
class CausalPath:
    """Edges from a cause to an effect, each beginning where the one before ends. `strength`, `confidence`: 0 to 1."""

    edges: tuple[Edge, ...]
    strength: float
    confidence: float

    @property
    def ids(self) -> list[str]:
        """The memories from cause to effect."""
        return [self.edges[0].source_id, *(edge.target_id for edge in self.edges)]


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """A possible cause: its path to what is observed, and P(effect | cause) · prior."""

    path: CausalPath
    posterior: float


def path_of(edges: Sequence[Edge]) -> CausalPath:
    """The path of these edges: two of .8 and .9 have the strength .648."""
    strength = math.prod(edge.weight for edge in edges) * DECAY ** (len(edges) - 1)
    return CausalPath(tuple(edges), strength, min(edge.confidence for edge in edges))


def walkable(edges: Iterable[Edge]) -> list[Edge]:
    """The edges that a path may take: none that is not sure enough, or was taken back (weight 0)."""
    return [edge for edge in edges if edge.weight > 0 and edge.confidence >= MIN_CONFIDENCE]


def effects(edges: Iterable[Edge], source: str) -> dict[str, CausalPath]:
    """Memory -> the strongest path to it, of all that follows from `source` within MAX_HOPS edges."""
    by_cause: dict[str, list[tuple[str, Edge]]] = defaultdict(list)
    for edge in walkable(edges):
        by_cause[edge.source_id].append((edge.target_id, edge))
    return {end: path_of(walk) for end, walk in _walks(by_cause, source).items()}


def causes(edges: Iterable[Edge], effect: str) -> dict[str, CausalPath]:
    """Memory -> the strongest path from it, of all from which `effect` follows within MAX_HOPS edges."""
    by_effect: dict[str, list[tuple[str, Edge]]] = defaultdict(list)
    for edge in walkable(edges):
        by_effect[edge.target_id].append((edge.source_id, edge))
    return {end: path_of(walk[::-1]) for end, walk in _walks(by_effect, effect).items()}


def _walks(steps: Mapping[str, Sequence[tuple[str, Edge]]], start: str) -> dict[str, tuple[Edge, ...]]:
    """The strongest walk to each memory. For each number of hops the best is kept: a longer one may be the stronger."""
    best: dict[str, tuple[float, tuple[Edge, ...]]] = {}
    frontier: dict[str, tuple[float, tuple[Edge, ...]]] = {start: (1.0 / DECAY, ())}
    for _ in range(MAX_HOPS):
        reached: dict[str, tuple[float, tuple[Edge, ...]]] = {}
        for one, (strength, walk) in frontier.items():
            for end, edge in steps.get(one, ()):
                stronger = strength * edge.weight * DECAY
                if end != start and stronger > reached.get(end, best.get(end, (0.0, ())))[0]:
                    reached[end] = stronger, (*walk, edge)
        best |= {end: found for end, found in reached.items() if found[0] > best.get(end, (0.0, ()))[0]}
        frontier = reached
    return {end: walk for end, (_, walk) in best.items()}


def mutual(there: float, back: float) -> float:
    """The strength of a mutual influence: the geometric mean, 0 where one direction is missing."""
    return math.sqrt(there * back)


def abduce(edges: Iterable[Edge], effect: str, importance: Mapping[str, float]) -> list[Hypothesis]:
    """The causes of an effect, the likeliest first: P(effect | cause) · prior.

    P is the strength of the path, the prior a cause's share of the candidates' importance; all alike where none is
    important.
    """
    found = causes(edges, effect)
    total = sum(importance.get(cause, 0.0) for cause in found)
    prior = {one: importance.get(one, 0.0) / total if total > 0 else 1 / len(found) for one in found}
    ranked = [Hypothesis(path, path.strength * prior[cause]) for cause, path in found.items()]
    return sorted(ranked, key=lambda one: (-one.posterior, -one.path.strength, one.path.ids))
