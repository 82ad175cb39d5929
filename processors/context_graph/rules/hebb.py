"""NREM: which memories are replayed, and what the replay makes of the edges between them (Hebb)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from processors.context_graph.rules.edges import Edge, EdgeChange

REPLAYED = 100
"""Memories that a dream replays at most."""
RATE, DECAY = 0.01, 0.001
SILENT_UP_TO = 0.1
"""An activation of at most this much counts as none."""
PRUNED_UP_TO = 0.05
RECENCY_SHARE, HALF_LIFE_H = 0.8, 24.0
FULL_RECALLS = 5
"""Recalls in the last day that make a memory fully active."""
EVIDENCE_KINDS = frozenset({"causal"})
"""What was stated: only strengthened, never weakened or pruned."""
DIGITS = 12


@dataclass(frozen=True, slots=True)
class Replayed:
    """A memory that is replayed. `activation` and `score`: 0 to 1."""

    memory_id: str
    activation: float
    score: float


def activation_of(recalls: int) -> float:
    """How active a memory is that was recalled so often in the last day."""
    return min(1.0, recalls / FULL_RECALLS)


def replay_score(age_h: float, activation: float) -> float:
    """How urgent it is to replay a memory, by the hours since it was stored or recalled last."""
    return RECENCY_SHARE * 0.5 ** (max(0.0, age_h) / HALF_LIFE_H) + (1.0 - RECENCY_SHARE) * activation


def strengthening(one: float, other: float) -> float:
    """What two activations add to the weight of an edge between them."""
    audible = [0.0 if activation <= SILENT_UP_TO else activation for activation in (one, other)]
    return RATE * audible[0] * audible[1]


def replayed_weight(weight: float, one: float, other: float, kind: str) -> float:
    """The weight of an edge after a replay of its ends with these activations."""
    decayed = weight if kind in EVIDENCE_KINDS else weight * (1.0 - DECAY)
    return round(min(1.0, decayed + strengthening(one, other)), DIGITS)


def replay(edges: Iterable[Edge], activations: Mapping[str, float]) -> list[EdgeChange]:
    """What a replay makes of the edges whose two ends are replayed, where it changes one.

    `activations`: of the replayed memories. A removed edge keeps the weight at which it was removed.
    """
    changes = []
    for edge in edges:
        ends = activations.get(edge.source_id), activations.get(edge.target_id)
        if ends[0] is None or ends[1] is None:
            continue
        weight = replayed_weight(edge.weight, ends[0], ends[1], edge.kind)
        is_removed = weight <= PRUNED_UP_TO and edge.kind not in EVIDENCE_KINDS
        if is_removed or weight != edge.weight:
            told = (edge.source_id, edge.target_id, edge.kind, weight, edge.confidence)
            changes.append(EdgeChange(*told, is_removed=is_removed))
    return changes


def clusters(pairs: Iterable[tuple[str, str]]) -> int:
    """How many connected components these edges make."""
    leaders: dict[str, str] = {}

    def leader(one: str) -> str:
        while leaders.setdefault(one, one) != one:
            leaders[one] = one = leaders[leaders[one]]
        return one

    for source, target in pairs:
        leaders[leader(source)] = leader(target)
    return sum(one == above for one, above in leaders.items())
