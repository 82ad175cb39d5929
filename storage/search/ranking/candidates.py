"""Late interaction and what else speaks for a record: the candidates of every side, and their absolute scores (`ranking`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from storage.search.ranking.background import background
from storage.search.ranking.dates import NamedDate, named_dates, nearness
from storage.search.ranking.weights import Evidence, Parts, late_scores, score_parts, totals
from storage.search.records.hits import Asked, read_dates
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.timeline import Neighbours
from storage.search.vectors.vector_index import Matches
from storage.search.words.tantivy_schema import Scores

if TYPE_CHECKING:
    from storage.search.engine import SearchIndexes

SEEDS = 5
EXPANDED = 30
"""Of so many of the best of a side the neighbours in their sessions are candidates too."""
DATED = 20
"""So many of what was recorded at a date that the query names are candidates by their vectors alone."""
Sides = dict[str, Sequence[tuple[int, float]]]


@dataclass(frozen=True, slots=True)
class Scored:
    """What was found: (n,) labels, sorted, with their scores, and what each side adds to these. `sides`: best first, with raw scores."""

    labels: np.ndarray
    scores: np.ndarray
    parts: Parts
    sides: Sides


def ranked(engine: SearchIndexes, asked: Asked, near: Matches, said: Scores, sessions: int) -> Scored:
    """The candidates of every side and their neighbours in their sessions. Without a vector they are ranked by words and dates."""
    late = engine.late
    sides: Sides = found_by(asked, near, said[: asked.size])
    seeds = seeds_of(sides)
    sides["graph"] = engine.graph_side(asked, sides)[: asked.size]
    dates = named_dates(asked.text)
    labels = _candidates(
        engine, asked, near, said, [label for label, _ in sides["graph"]], _nearest_at(engine, asked, dates), sessions
    )
    evidence = Evidence(
        len(labels),
        keyword=_placed(labels, said, 0.0) / (engine.ceiling(asked.text) or 1.0),
        near=_among(labels, late.timelines.around(labels.tolist())),
        asking=late.asking.shares(labels),
    )
    if asked.vector is not None:
        evidence.vector = _cosines(engine, asked.vector, labels)
        evidence.background = background(engine.cosines, asked.vector, asked.allowed.labels)
    if asked.tokens is not None and late.tokens is not None:
        evidence.weights = late.tokens.weights(asked.tokens)
        matches = late.matches(asked.tokens, evidence.weights, labels)
        evidence.rows, evidence.is_read, evidence.lengths = matches.rows, matches.is_read, matches.lengths
        asked.fits.update(zip(labels[matches.is_read].tolist(), matches.fits[matches.is_read].tolist(), strict=True))
    if sides["graph"]:
        parents = places_in(labels, np.array(seeds, np.int64))
        places = _placed(labels, sides["graph"], ABSENT).astype(np.int64)
        evidence.parents = np.where(places == ABSENT, ABSENT, parents[places])
    if dates:
        moments = read_dates(asked.cursor, labels.tolist())
        evidence.dates = np.array(
            [nearness(dates, moments[label][0].date()) if label in moments else 0.0 for label in labels.tolist()]
        )
        sides["date"] = _best_first(labels, evidence.dates, evidence.dates > 0)
    lates = late_scores(evidence)
    parts = score_parts(evidence, lates)
    sides["late"] = _best_first(labels, lates, evidence.is_read)
    return Scored(labels, totals(parts), parts, sides)


def _candidates(
    engine: SearchIndexes,
    asked: Asked,
    near: Matches,
    said: Scores,
    related: Sequence[int],
    dated: Sequence[int],
    sessions: int,
) -> np.ndarray:
    """(n,) labels that the filter leaves, sorted: the best of each side, the neighbours of some of these, whole sessions."""
    around = engine.late.timelines.around(dict.fromkeys(label for label, _ in (*near[:EXPANDED], *said[:EXPANDED])))
    chosen = [*(label for label, _ in (*near, *said[: asked.size])), *related, *dated]
    if sessions:
        best = (label for pair in zip_longest(near, said) for label, _ in filter(None, pair))
        chosen += engine.late.timelines.together([*dated, *best], sessions)
    return asked.allowed.of(np.unique(np.concatenate([np.array(chosen, np.int64), around.labels])))


def _placed(labels: np.ndarray, matches: Sequence[tuple[int, float]], nothing: float) -> np.ndarray:
    """(n,) the score of each of the sorted labels, `nothing` where there is none."""
    values = np.full(len(labels), nothing)
    if matches:
        places = places_in(labels, np.array([label for label, _ in matches], np.int64))
        is_there = places != ABSENT
        values[places[is_there]] = np.array([score for _, score in matches])[is_there]
    return values


def _among(labels: np.ndarray, around: Neighbours) -> Neighbours:
    """Those neighbours that are among the sorted labels themselves, by number."""
    places = places_in(labels, around.labels)
    is_there = places != ABSENT
    return Neighbours(around.rows[is_there], places[is_there], around.far[is_there])


def _best_first(labels: np.ndarray, scores: np.ndarray, chosen: np.ndarray) -> list[tuple[int, float]]:
    """(label, score) of the chosen, best first."""
    labels, scores = labels[chosen], scores[chosen]
    order = np.lexsort((labels, -scores))
    return list(zip(labels[order].tolist(), scores[order].tolist(), strict=True))


def _nearest_at(engine: SearchIndexes, asked: Asked, dates: Sequence[NamedDate]) -> list[int]:
    """Of what was recorded at a date with its year, the nearest."""
    found: list[int] = []
    if asked.vector is None:
        return found
    for first, last in filter(None, (named.bounds() for named in dates)):
        start, end = max(first, asked.filter.created_from or first), min(last, asked.filter.created_before or last)
        if start < end:
            allowed = engine.allowed(asked.cursor, replace(asked.filter, created_from=start, created_before=end))
            found += [label for label, _ in engine.vector_side(asked.vector, DATED, allowed)[0]]
    return found


def _cosines(engine: SearchIndexes, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """(n,) the cosine of each document, NaN without a vector; of a long one the mean of its whole vector's and its best passage's."""
    parts, owners = engine.late.passages.split(labels)
    is_part = parts != labels[owners]
    parts, owners = parts[is_part], owners[is_part]
    cosines = engine.cosines(vector, np.concatenate([labels, parts])).astype(np.float64)
    whole, some = cosines[: len(labels)], cosines[len(labels) :]
    if len(parts):
        first = np.flatnonzero(np.diff(owners, prepend=-1))
        best = np.fmax.reduceat(some, first)
        long = owners[first]
        whole[long] = np.where(np.isnan(best), whole[long], (whole[long] + best) / 2)
    return whole


def found_by(asked: Asked, near: Matches, said: Scores) -> dict[str, Sequence[tuple[int, float]]]:
    """The sides vector and keyword, of what the filter leaves only."""
    labels = np.array([label for label, _ in (*near, *said)], np.int64)
    found = set(asked.allowed.of(labels).tolist())
    return {
        "vector": [match for match in near if match[0] in found],
        "keyword": [match for match in said if match[0] in found],
    }


def seeds_of(sides: Mapping[str, Sequence[tuple[int, float]]]) -> list[int]:
    """The best of each side, best first: by the better of their ranks."""
    ranks: dict[int, int] = {}
    for matches in sides.values():
        for rank, (label, _) in enumerate(matches[:SEEDS]):
            ranks[label] = min(rank, ranks.get(label, SEEDS))
    return sorted(ranks, key=lambda label: ranks[label])
