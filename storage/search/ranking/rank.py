"""Ranking of a query's candidates: by evidence (`weights`), or by the fusion of ranks (`fusion`)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from storage.search.ranking.candidates import (
    Candidates,
    allowed_sides,
    best_of_sides,
    gather_candidates,
    related,
)
from storage.search.ranking.context import Scored, SearchContext, Sides
from storage.search.ranking.evidence import collect_evidence
from storage.search.ranking.fusion import K, fuse, imputed_order, ordered
from storage.search.ranking.weights import Evidence, late_scores, score_parts, totals
from storage.search.records.label_map import places_in
from storage.search.records.matches import Matches, best_first


def rank(context: SearchContext, nearest: Matches, keywords: Matches) -> Scored:
    """Score the candidates by evidence. `nearest` and `keywords` are what the vector and the keyword side find.

    Without a vector they are ranked by words and dates.
    """
    candidates = gather_candidates(context, nearest, keywords)
    evidence = collect_evidence(context, candidates, keywords)
    lates = late_scores(evidence)
    parts = score_parts(evidence, lates)
    sides = _all_sides(candidates, evidence, lates)
    return Scored(candidates.labels, totals(parts), parts, sides, evidence.fits, evidence.coverage)


def _all_sides(candidates: Candidates, evidence: Evidence, lates: np.ndarray) -> Sides:
    """The sides that found the candidates, and those that are known of candidates only: date and late."""
    sides = dict(candidates.sides)
    if candidates.dates:
        sides["date"] = best_first(candidates.labels, evidence.dates, evidence.dates > 0)
    sides["late"] = best_first(candidates.labels, lates, evidence.is_read)
    return sides


def fuse_ranks(context: SearchContext, nearest: Matches, keywords: Matches, weights: Mapping[str, float]) -> Scored:
    """Score what the sides vector, keyword and graph find by reciprocal-rank fusion.

    The query's own candidates that no side finds are last.
    """
    size = context.query.pool_size
    sides = allowed_sides(context.allowed, nearest, keywords)
    sides["graph"] = _newest_first(context, related(context, best_of_sides(sides))[: 2 * size])[:size]
    ranks = {side: [label for label, _ in matches] for side, matches in sides.items()}
    if nearest:
        ranks["vector"] = imputed_order(ranks["vector"], ranks["keyword"], context.space.embedded(ranks["keyword"]))
    extra = context.representatives(context.allowed.of(np.array(context.query.candidates, np.int64))).tolist()
    scores = dict.fromkeys(extra, 0.0) | fuse(ranks, weights)
    labels = np.fromiter(scores, np.int64, len(scores))
    order = np.argsort(labels)
    labels, values = labels[order], np.fromiter(scores.values(), np.float64, len(scores))[order]
    parts = {side: np.full(len(labels), np.nan) for side in sides}
    for side, best in ranks.items():
        places = places_in(labels, np.array(best, np.int64))
        parts[side][places] = (K + 1) * weights.get(side, 0.0) / (K + 1 + np.arange(len(best)))
    return Scored(labels, values, parts, sides)


def _newest_first(context: SearchContext, related: Matches) -> Matches:
    """Of the same parent the newest records first: where ranks count, so does their order."""
    dates = context.records.documents.dates(context.cursor, [label for label, _ in related])
    places = {label: place for label, place in related if label in dates}
    return [(label, places[label]) for label in ordered({label: -place for label, place in places.items()}, dates)]
