"""Chains: by which edges the memories that a search returns hang together."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from processors.context_graph.rules.edges import Edge

MOST_HOPS = 5


def chains(ids: Sequence[str], edges: Iterable[Edge]) -> dict[str, tuple[str, ...]]:
    """By memory the path from the first of `ids` to it, both ends on it; none for what no path reaches.

    A path goes over these memories only, along edges of any kind and in both directions, with the fewest hops (at most
    MOST_HOPS), and of these the one with the greatest product of weights.
    """
    if not ids:
        return {}
    weights = _joined(set(ids), edges)
    paths: dict[str, tuple[str, ...]] = {ids[0]: (ids[0],)}
    strengths, reached = {ids[0]: 1.0}, [ids[0]]
    for _ in range(MOST_HOPS):
        found: dict[str, tuple[float, tuple[str, ...]]] = {}
        for one in reached:
            for other, weight in weights.get(one, {}).items():
                strength = strengths[one] * weight
                if other not in paths and (other not in found or strength > found[other][0]):
                    found[other] = strength, (*paths[one], other)
        reached = sorted(found)
        for one, (strength, path) in found.items():
            strengths[one], paths[one] = strength, path
    return {one: path for one, path in paths.items() if len(path) > 1}


def _joined(among: set[str], edges: Iterable[Edge]) -> Mapping[str, Mapping[str, float]]:
    """By memory those that an edge joins it to, with the weight of the heaviest."""
    weights: dict[str, dict[str, float]] = defaultdict(dict)
    for edge in edges:
        one, other = edge.source_id, edge.target_id
        if one in among and other in among:
            weights[one][other] = weights[other][one] = max(edge.weight, weights[one].get(other, 0.0))
    return weights
