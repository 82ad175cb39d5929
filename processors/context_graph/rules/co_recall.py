"""The edges that a dream draws from recalls: what searches returned together belongs together.

A dream hands over the recalls of its namespace and what edges there are, and publishes the changes as they come back
(`context.edges.changed`): nothing here looks at a clock or at chance. A search ranks by these edges
(`storage/search/ranking/weights`, part `recalled`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import combinations

from processors.context_graph.rules.edges import Edge, EdgeChange, ends_of
from storage.search.ranking.ranks import rank_strength
from streams.event_types.context_edges import REM_WEIGHT

REM = "rem"
DEPTH = 10
"""Results of a search that count: what an agent asks for by default."""
FULL_RECALLS = 5
"""A query that was asked so often counts in full, one that was asked once not at all."""
LEAST = 0.05
"""Strength of an edge below which it is left out."""
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Recall:
    """What one request of a search returned: rows of `context_recalls`, best first."""

    query_id: str
    memory_ids: tuple[str, ...]
    similarities: tuple[float, ...]
    at: datetime


def co_recalled(recalls: Iterable[Recall], edges: Iterable[Edge]) -> list[EdgeChange]:
    """The edges (`rem`) between memories that were recalled together.

    Weights are absolute; they are ordered by their ends.
    `recalls`: of the namespace, in any order, up to the dream's beginning. `edges`: all that there are, of every kind.
    Of a query the last request counts, by how often it was asked; of two memories the query that holds them highest:
    strength = support · r(rank) · r(other rank), r = 6 / (5 + rank), support = (asked - 1) / 4, at most 1; weight =
    REM_WEIGHT + (1 - REM_WEIGHT) · strength. The same recalls and edges give the same changes. An edge that weighs as
    much already is not among them: what is recalled no more wears off by replay, and nothing here lowers it.
    """
    by_query: dict[str, list[Recall]] = defaultdict(list)
    for recall in recalls:
        by_query[recall.query_id].append(recall)
    known = {edge.key[:2]: edge.weight for edge in edges if edge.kind == REM}
    best: dict[tuple[str, str], tuple[float, float]] = {}
    for asked in by_query.values():
        support = min(1.0, (len(asked) - 1) / (FULL_RECALLS - 1))
        last = max(asked, key=lambda one: (one.at, one.memory_ids))
        for ends, strength in _pairs(last.memory_ids).items():
            if support * strength > max(LEAST, best.get(ends, (0.0, 0.0))[0]):
                best[ends] = support * strength, support
    return _changes(best, known)


def asked_again(recalls: Iterable[Recall], known: Collection[str] = ()) -> list[str]:
    """The queries that were asked FULL_RECALLS times or more, sorted, without those that are known for it."""
    counts = Counter(recall.query_id for recall in recalls)
    return sorted(query_id for query_id, count in counts.items() if count >= FULL_RECALLS and query_id not in known)


def _pairs(memory_ids: Sequence[str]) -> Mapping[tuple[str, str], float]:
    """By pair of the first results how high both stood, 0 to 1."""
    ranked = [(one, rank_strength(rank)) for rank, one in enumerate(memory_ids[:DEPTH], 1)]
    return {
        ends_of(one, other, REM): high * low for (one, high), (other, low) in combinations(ranked, 2) if one != other
    }


def _changes(
    best: Mapping[tuple[str, str], tuple[float, float]], known: Mapping[tuple[str, str], float]
) -> list[EdgeChange]:
    found = []
    for ends in sorted(best):
        strength, support = best[ends]
        weight = round(REM_WEIGHT + (1 - REM_WEIGHT) * strength, DIGITS)
        if weight > known.get(ends, 0.0):
            found.append(EdgeChange(*ends, REM, weight, support))
    return found
