"""Candidates of every side with their scores: by evidence (`weights`), or by the fusion of ranks (`fusion`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

import numpy as np

from storage.search.ranking.background import background
from storage.search.ranking.context import Scored, SearchContext, Sides
from storage.search.ranking.dates import NamedDate, named_dates, nearness
from storage.search.ranking.fusion import K, fuse, imputed_order, ordered
from storage.search.ranking.weights import Evidence, late_scores, score_parts, totals
from storage.search.records.filter_cache import AllowList
from storage.search.records.hits import read_dates
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.matches import Matches, best_first, scores_of
from storage.search.records.timeline import Neighbours

SEEDS = 5
EXPANDED = 30
"""The neighbours in their sessions of this many of a side's best are candidates too."""
DATED = 20
"""Of what was recorded at a date that the query names, this many are candidates by their vectors alone."""


def rank(context: SearchContext, near: Matches, said: Matches) -> Scored:
    """The candidates scored by evidence. `near` and `said` are what the vector and the keyword side find.

    Without a vector they are ranked by words and dates.
    """
    query, records = context.query, context.records
    sides = _allowed_sides(context.allowed, near, said[: query.pool_size])
    seeds = _seeds(sides)
    sides["graph"] = _related(context, seeds)[: query.pool_size]
    dates = named_dates(query.text)
    labels = _candidates(context, sides, near, said, _recorded_at(context, dates))
    evidence = Evidence(
        len(labels),
        keyword=scores_of(labels, said, 0.0) / (context.words.ceiling(query.text) or 1.0),
        near=_among(labels, records.timelines.around(labels.tolist())),
        asking=records.questions.shares(labels),
    )
    _add_vectors(context, labels, evidence)
    fits = _add_tokens(context, labels, evidence)
    if sides["graph"]:
        parents = places_in(labels, np.array(seeds, np.int64))
        places = scores_of(labels, sides["graph"], ABSENT).astype(np.int64)
        evidence.parents = np.where(places == ABSENT, ABSENT, parents[places])
    if dates:
        evidence.dates = _date_scores(context, labels, dates)
        sides["date"] = best_first(labels, evidence.dates, evidence.dates > 0)
    lates = late_scores(evidence)
    parts = score_parts(evidence, lates)
    sides["late"] = best_first(labels, lates, evidence.is_read)
    return Scored(labels, totals(parts), parts, sides, fits)


def fuse_ranks(context: SearchContext, near: Matches, said: Matches, weights: Mapping[str, float]) -> Scored:
    """The candidates scored by reciprocal-rank fusion of the sides vector, keyword and graph."""
    size = context.query.pool_size
    sides = _allowed_sides(context.allowed, near, said)
    sides["graph"] = _newest_first(context, _related(context, _seeds(sides))[: 2 * size])[:size]
    ranks = {side: [label for label, _ in matches] for side, matches in sides.items()}
    if near:
        ranks["vector"] = imputed_order(ranks["vector"], ranks["keyword"], context.space.embedded(ranks["keyword"]))
    scores = fuse(ranks, weights)
    labels = np.fromiter(scores, np.int64, len(scores))
    order = np.argsort(labels)
    labels, values = labels[order], np.fromiter(scores.values(), np.float64, len(scores))[order]
    parts = {side: np.full(len(labels), np.nan) for side in sides}
    for side, best in ranks.items():
        places = places_in(labels, np.array(best, np.int64))
        parts[side][places] = (K + 1) * weights.get(side, 0.0) / (K + 1 + np.arange(len(best)))
    return Scored(labels, values, parts, sides)


def _allowed_sides(allowed: AllowList, near: Matches, said: Matches) -> Sides:
    """The sides vector and keyword, of what the filter leaves only."""
    labels = np.array([label for label, _ in (*near, *said)], np.int64)
    found = set(allowed.of(labels).tolist())
    return {
        "vector": [match for match in near if match[0] in found],
        "keyword": [match for match in said if match[0] in found],
    }


def _seeds(sides: Mapping[str, Sequence[tuple[int, float]]]) -> list[int]:
    """The best of each side, best first: by the better of their ranks."""
    ranks: dict[int, int] = {}
    for matches in sides.values():
        for place, (label, _) in enumerate(matches[:SEEDS]):
            ranks[label] = min(place, ranks.get(label, SEEDS))
    return sorted(ranks, key=lambda label: ranks[label])


def _related(context: SearchContext, seeds: Sequence[int]) -> Matches:
    """What is one relation away from seeds, with the place of its best parent among these."""
    places = context.records.follow_relations(context.cursor).neighbours(seeds)
    kept = context.allowed.of(np.fromiter(places, np.int64, len(places)))
    return [(label, float(places[label])) for label in kept.tolist()]


def _newest_first(context: SearchContext, related: Matches) -> Matches:
    """Of the same parent the newest records first: where ranks count, so does their order."""
    dates = read_dates(context.cursor, [label for label, _ in related])
    places = {label: place for label, place in related if label in dates}
    return [(label, places[label]) for label in ordered({label: -place for label, place in places.items()}, dates)]


def _recorded_at(context: SearchContext, dates: Sequence[NamedDate]) -> list[int]:
    """Of what was recorded at a date with its year, the nearest."""
    found: list[int] = []
    filter, vector = context.query.filter, context.query.vector
    if vector is None:
        return found
    for first, last in [bounds for date in dates if (bounds := date.bounds()) is not None]:
        start, end = max(first, filter.created_from or first), min(last, filter.created_before or last)
        if start < end:
            dated = replace(filter, created_from=start, created_before=end)
            allowed = context.records.allowed(context.cursor, dated)
            found += [label for label, _ in context.space.nearest(vector, DATED, allowed).matches]
    return found


def _candidates(context: SearchContext, sides: Sides, near: Matches, said: Matches, dated: Sequence[int]) -> np.ndarray:
    """(n,) labels that the filter leaves, sorted: the best of each side, some neighbours of these, whole sessions."""
    timelines, query = context.records.timelines, context.query
    around = timelines.around(dict.fromkeys(label for label, _ in (*near[:EXPANDED], *said[:EXPANDED])))
    chosen = [label for label, _ in (*near, *said[: query.pool_size], *sides["graph"])]
    chosen += dated
    if query.sessions:
        best = (label for pair in zip_longest(near, said) for label, _ in filter(None, pair))
        chosen += timelines.together([*dated, *best], query.sessions)
    return context.allowed.of(np.unique(np.concatenate([np.array(chosen, np.int64), around.labels])))


def _among(labels: np.ndarray, around: Neighbours) -> Neighbours:
    """Those neighbours that are among the sorted labels themselves, by number."""
    places = places_in(labels, around.labels)
    is_there = places != ABSENT
    return Neighbours(around.rows[is_there], places[is_there], around.far[is_there])


def _add_vectors(context: SearchContext, labels: np.ndarray, evidence: Evidence) -> None:
    """How near the candidates are to the query's vector, and how near texts in general are to it."""
    if (vector := context.query.vector) is not None:
        evidence.vector = context.space.document_similarities(vector, labels)
        evidence.background = background(context.space.similarities, vector, context.allowed.labels)


def _add_tokens(context: SearchContext, labels: np.ndarray, evidence: Evidence) -> dict[int, int]:
    """Add how the candidates match the query's tokens; document -> the label of its best passage."""
    tokens = context.query.tokens
    matches = None if tokens is None else context.space.match_tokens(tokens, labels)
    if matches is None:
        return {}
    evidence.weights, evidence.is_read, evidence.rows = matches.weights, matches.is_read, matches.rows
    evidence.lengths = matches.lengths
    return dict(zip(labels[matches.is_read].tolist(), matches.fits[matches.is_read].tolist(), strict=True))


def _date_scores(context: SearchContext, labels: np.ndarray, dates: Sequence[NamedDate]) -> np.ndarray:
    """(n,) how near the day of each candidate is to a date that the query names, 0 for nowhere near."""
    moments = read_dates(context.cursor, labels.tolist())
    scores = (nearness(dates, moments[label][0].date()) if label in moments else 0.0 for label in labels.tolist())
    return np.array(list(scores))
