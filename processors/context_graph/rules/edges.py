"""Edges between memories: kinds, directions, and what merges of memories make of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

KINDS = ("similar", "temporal", "causal", "rem", "shortcut")
UNDIRECTED = frozenset({"similar", "temporal", "rem"})
Key = tuple[str, str, str]
"""Source, target, kind."""


@dataclass(frozen=True, slots=True)
class Edge:
    """An edge between two memories. `weight` and `confidence`: 0 to 1.

    Of a kind without direction the source is the smaller id; `causal` goes from cause to effect.
    """

    source_id: str
    target_id: str
    kind: str
    weight: float
    confidence: float = 1.0
    evidence: Any = None

    @property
    def key(self) -> Key:
        return self.source_id, self.target_id, self.kind


@dataclass(frozen=True, slots=True)
class EdgeChange:
    """What a dream makes of an edge: weights are absolute. An edge that is not there comes into being."""

    source_id: str
    target_id: str
    kind: str
    weight: float
    confidence: float = 1.0
    is_removed: bool = False


def ends_of(source_id: str, target_id: str, kind: str) -> tuple[str, str]:
    """Source and target as an edge of this kind has them."""
    if kind in UNDIRECTED and target_id < source_id:
        return target_id, source_id
    return source_id, target_id


def living(edges: Iterable[Edge], successors: Mapping[str, str]) -> list[Edge]:
    """The edges between what is left of merged memories. `successors`: merged memory -> the living one.

    An edge of a memory with itself goes; of several between the same two the heaviest stays.
    """
    best: dict[Key, Edge] = {}
    for edge in edges:
        source, target = (successors.get(end, end) for end in (edge.source_id, edge.target_id))
        if source == target:
            continue
        source, target = ends_of(source, target, edge.kind)
        is_moved = (source, target) != (edge.source_id, edge.target_id)
        one = replace(edge, source_id=source, target_id=target) if is_moved else edge
        known = best.get(one.key)
        if known is None or one.weight > known.weight:
            best[one.key] = one
    return list(best.values())
