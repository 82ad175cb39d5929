"""The candidates of a query: the best of each side and the records around them.

Around them are their relations, their neighbours in sessions, and the records of a date that the query names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

import numpy as np

from storage.search.ranking.context import SearchContext, Sides
from storage.search.ranking.dates import NamedDate, named_dates
from storage.search.records.filter_cache import AllowList
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.matches import Matches, scores_of

SEEDS = 5
"""The relations of this many of a side's best are followed."""
EXPANDED_MATCHES = 30
"""The neighbours in their sessions of this many of a side's best are candidates too."""
DATED_CANDIDATES = 20
"""Of what was recorded at a date that the query names, this many are candidates by their vectors alone."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """What may answer a query: (n,) labels, sorted, and what found them.

    `sides`: the matches of vector, keyword and graph; `parents`: (n,) the number of the best candidate that each is
    related to, ABSENT for none; `dates`: those that the query names.
    """

    labels: np.ndarray
    sides: Sides
    parents: np.ndarray
    dates: Sequence[NamedDate]


def gather_candidates(context: SearchContext, nearest: Matches, keywords: Matches) -> Candidates:
    """Collect what may answer the query. `nearest` and `keywords` are what the vector and the keyword side find."""
    dates = named_dates(context.query.text)
    nearest = nearest[: _part(context.query.pool_size, context.share.vector)]
    sides = allowed_sides(context.allowed, nearest, keywords[: _part(context.query.pool_size, context.share.keyword)])
    seeds = best_of_sides(sides)
    sides["graph"] = related(context, seeds)[: context.query.pool_size]
    labels = _labels(context, sides, nearest, keywords, _recorded_at(context, dates))
    return Candidates(labels, sides, _parents(labels, seeds, sides["graph"]), dates)


def allowed_sides(allowed: AllowList, nearest: Matches, keywords: Matches) -> Sides:
    """The sides vector and keyword, of what the filter leaves only."""
    labels = np.array([label for label, _ in (*nearest, *keywords)], np.int64)
    allowed_labels = set(allowed.of(labels).tolist())
    return {
        "vector": [match for match in nearest if match[0] in allowed_labels],
        "keyword": [match for match in keywords if match[0] in allowed_labels],
    }


def best_of_sides(sides: Mapping[str, Sequence[tuple[int, float]]]) -> list[int]:
    """The best of each side, best first: by the better of their ranks."""
    ranks: dict[int, int] = {}
    for matches in sides.values():
        for place, (label, _) in enumerate(matches[:SEEDS]):
            ranks[label] = min(place, ranks.get(label, SEEDS))
    return sorted(ranks, key=lambda label: ranks[label])


def related(context: SearchContext, seeds: Sequence[int]) -> Matches:
    """What is one relation away from seeds, with the place of its best parent among these."""
    places = context.records.follow_relations(context.cursor).neighbours(seeds)
    allowed = context.allowed.of(np.fromiter(places, np.int64, len(places)))
    found = context.distinct([(label, float(places[label])) for label in allowed.tolist()])
    return [(label, place) for label, place in found if label != seeds[int(place)]]


def _recorded_at(context: SearchContext, dates: Sequence[NamedDate]) -> list[int]:
    """Of what was recorded at a date with its year, the nearest."""
    labels: list[int] = []
    filter, vector = context.query.filter, context.query.vector
    if vector is None:
        return labels
    for first, last in [bounds for date in dates if (bounds := date.bounds()) is not None]:
        start, end = max(first, filter.created_from or first), min(last, filter.created_before or last)
        if start < end:
            dated = replace(filter, created_from=start, created_before=end)
            allowed = context.records.allowed(context.cursor, dated)
            labels += [label for label, _ in context.nearest(vector, DATED_CANDIDATES, allowed).matches]
    return labels


def _labels(
    context: SearchContext, sides: Sides, nearest: Matches, keywords: Matches, dated: Sequence[int]
) -> np.ndarray:
    """(n,) labels that the filter leaves, sorted.

    They are the best of each side, some neighbours of these, and whole sessions.
    """
    timelines, query, share = context.records.timelines, context.query, context.share
    expanded = (
        *nearest[: _part(EXPANDED_MATCHES, share.vector)],
        *keywords[: _part(EXPANDED_MATCHES, share.keyword)],
    )
    around = timelines.around(dict.fromkeys(label for label, _ in expanded))
    chosen = [label for matches in sides.values() for label, _ in matches]
    chosen += [*dated, *query.candidates]
    if query.sessions:
        best = (label for pair in zip_longest(nearest, keywords) for label, _ in filter(None, pair))
        chosen += timelines.together([*dated, *best], query.sessions)
    allowed = context.allowed.of(np.unique(np.concatenate([np.array(chosen, np.int64), around.labels])))
    return np.unique(context.representatives(allowed))


def _part(count: int, share: float) -> int:
    return math.ceil(count * share)


def _parents(labels: np.ndarray, seeds: Sequence[int], graph: Sequence[tuple[int, float]]) -> np.ndarray:
    if not graph:
        return np.full(len(labels), ABSENT)
    places = scores_of(labels, graph, ABSENT).astype(np.int64)
    return np.where(places == ABSENT, ABSENT, places_in(labels, np.array(seeds, np.int64))[places])
