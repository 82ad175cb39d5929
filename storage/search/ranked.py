"""Late interaction and what else speaks for a record: the candidates of every side, and their absolute scores (`ranking`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from storage.search.background import background
from storage.search.dates import NamedDate, named_dates, nearness
from storage.search.hits import Asked, read_dates
from storage.search.ranking import Evidence, late_scores, score_parts
from storage.search.tantivy_parts import Scores
from storage.search.vector import Matches

if TYPE_CHECKING:
    from storage.search.engine import SearchIndexes

SEEDS = 5
EXPANDED = 30
"""Of so many of the best of a side the neighbours in their sessions are candidates too."""
DATED = 20
"""So many of what was recorded at a date that the query names are candidates by their vectors alone."""
Sides = dict[str, Sequence[tuple[int, float]]]


def ranked(
    engine: SearchIndexes, asked: Asked, near: Matches, said: Scores, sessions: int
) -> tuple[Sides, dict[int, float], dict[int, dict[str, float]]]:
    """The sides, and of the candidates of every side and their neighbours in their sessions the scores, and the parts of these."""
    assert asked.tokens is not None and asked.vector is not None
    late = engine.late
    assert late.tokens is not None
    sides: Sides = found_by(asked, near, said[: asked.size])
    sides["graph"] = engine.graph_side(asked, sides)[: asked.size]
    chosen = dict.fromkeys(label for label, _ in (*near, *said[: asked.size]))
    around = late.around(dict.fromkeys(label for label, _ in (*near[:EXPANDED], *said[:EXPANDED])))
    chosen |= dict.fromkeys(other for others in around.values() for other, _ in others)
    chosen |= dict.fromkeys(label for label, _ in sides["graph"])
    dates = named_dates(asked.text)
    dated = _nearest_at(engine, asked, dates)
    chosen |= dict.fromkeys(dated)
    if sessions:
        best = (label for pair in zip_longest(near, said) for label, _ in filter(None, pair))
        chosen |= dict.fromkeys(late.timelines.together([*dated, *best], sessions))
    found = dict.fromkeys(asked.allowed.of(np.fromiter(chosen, np.int64, len(chosen))).tolist())
    weights = late.tokens.weights(asked.tokens)
    matches = late.matches(asked.tokens, weights, found)
    ceiling = engine.ceiling(asked.text) or 1.0
    seeds = seeds_of({side: sides[side] for side in ("vector", "keyword")})
    around |= late.around(label for label in found if label not in around)
    evidence = Evidence(
        matches={label: row for label, (row, _) in matches.items()},
        weights=weights,
        keyword={label: score / ceiling for label, score in said if label in found},
        vector=_cosines(engine, asked.vector, found),
        background=background(engine.cosines, asked.vector, asked.allowed.labels),
        lengths=late.lengths(list(found)),
        near={label: [one for one in around.get(label, ()) if one[0] in found] for label in found},
        asking={label: share for label in found if (share := late.asking.share(label))},
        parents={label: seeds[int(place)] for label, place in sides["graph"]},
    )
    if dates:
        moments = read_dates(asked.cursor, list(found))
        evidence.dates = {label: close for label, (moment, _) in moments.items() if (close := nearness(dates, moment.date()))}
        sides["date"] = sorted(evidence.dates.items(), key=_by_score)
    asked.fits.update({label: part for label, (_, part) in matches.items()})
    lates = late_scores(evidence)
    parts = score_parts(evidence, found, lates)
    sides["late"] = sorted(lates.items(), key=_by_score)
    scores = {label: sum(given.values()) for label, given in parts.items()}
    return sides, scores, parts


def _nearest_at(engine: SearchIndexes, asked: Asked, dates: Sequence[NamedDate]) -> list[int]:
    """Of what was recorded at a date with its year, the nearest."""
    assert asked.vector is not None
    found: list[int] = []
    for first, last in filter(None, (named.bounds() for named in dates)):
        start, end = max(first, asked.filter.created_from or first), min(last, asked.filter.created_before or last)
        if start < end:
            allowed = engine.allowed(asked.cursor, replace(asked.filter, created_from=start, created_before=end))
            found += [label for label, _ in engine.vector_side(asked.vector, DATED, allowed)[0]]
    return found


def _cosines(engine: SearchIndexes, vector: np.ndarray, labels: Iterable[int]) -> dict[int, float]:
    """The cosine of each document; of a long one the mean of its whole vector's and its best passage's."""
    wanted = list(labels)
    parts = {label: some for label in wanted if (some := engine.late.passages.parts(label))}
    every = [*wanted, *(part for some in parts.values() for part in some)]
    cosines = engine.cosines(vector, np.array(every, np.int64))
    known = {label: cosine for label, cosine in zip(every, cosines.tolist(), strict=True) if cosine == cosine}
    if not parts:
        return known
    whole = {label: known[label] for label in wanted if label in known}
    best = {
        label: max(known[part] for part in some if part in known) for label, some in parts.items() if any(part in known for part in some)
    }
    return {label: (cosine + best.get(label, cosine)) / 2 for label, cosine in whole.items()}


def found_by(asked: Asked, near: Matches, said: Scores) -> dict[str, Sequence[tuple[int, float]]]:
    """The sides vector and keyword, of what the filter leaves only."""
    labels = np.array([label for label, _ in (*near, *said)], np.int64)
    found = set(asked.allowed.of(labels).tolist())
    return {"vector": [match for match in near if match[0] in found], "keyword": [match for match in said if match[0] in found]}


def _by_score(match: tuple[int, float]) -> tuple[float, int]:
    return -match[1], match[0]


def seeds_of(sides: Mapping[str, Sequence[tuple[int, float]]]) -> list[int]:
    """The best of each side, best first: by the better of their ranks."""
    ranks: dict[int, int] = {}
    for matches in sides.values():
        for rank, (label, _) in enumerate(matches[:SEEDS]):
            ranks[label] = min(rank, ranks.get(label, SEEDS))
    return sorted(ranks, key=lambda label: ranks[label])
