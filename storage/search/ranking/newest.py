"""The newest truth first: a record that changes what another one says stands before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import duckdb
import numpy as np

from storage.search.ranking.context import Scored, SearchContext
from storage.search.records.filter import Filter
from storage.search.records.hits import TIE_DIGITS
from storage.search.records.records import Records

MAX_FOLLOWED = 50
"""What changes one of this many best rows is found with them."""
ABOVE = 2 * 10.0**-TIE_DIGITS
"""A statement stands this much above the one that it changes, which no answer shows.

Of several records that state the same an old one may stand for them, so that dates do not order the two.
"""
MAX_CHANGES = 10
"""This many records that a record changes, or that change it, are named."""


def lifted(scores: np.ndarray, pairs: Sequence[tuple[int, int]]) -> np.ndarray:
    """(n,) scores where each newer one is above its older one's. `pairs`: (place of the newer, of the older)."""
    found = scores.copy()
    for _ in pairs:  # a chain of changes is lifted link by link
        before = found.copy()
        for newer, older in pairs:
            found[newer] = max(found[newer], found[older] + ABOVE)
        if np.array_equal(before, found):
            break
    return found


def read_changes(
    cursor: duckdb.DuckDBPyConnection, records: Records, namespace: str, label: int
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """(kind, id) of what a record changes, and of what changes it and still holds, the latest first.

    Of the records that state the same, merged ones too, that one is named which stands for them.
    """
    changed = records.changed(label)
    if not any(changed):
        return [], []
    allowed, clusters = records.allowed(cursor, Filter(namespace)), records.clusters
    newer, older = (np.array(labels, np.int64) for labels in changed)
    standing = clusters.representatives(older, allowed.labels).tolist()
    earlier = dict(zip(clusters.find(older)[::-1].tolist(), standing[::-1], strict=True))
    disputing = dict.fromkeys(allowed.of(clusters.representatives(newer, allowed.labels)).tolist())
    named = records.documents.names
    return named(cursor, list(earlier.values())[:MAX_CHANGES]), named(cursor, list(disputing)[::-1][:MAX_CHANGES])


def newest_first(scored: Scored, context: SearchContext) -> Scored:
    """The candidates, where one that changes another has a score above the other's.

    What a record gains is its part `change`. What changes one of the best is a candidate too, also where nothing of the
    query is in it: a question that names what held before is answered by what holds now.
    """
    records = context.records
    scored = _with_newer(scored, context)
    pairs = records.change_pairs(scored.labels, context.query.filter.known_at)
    if not pairs:
        return scored
    scores = lifted(scored.scores, pairs)
    gained = scores - scored.scores
    if not gained.any():
        return scored
    return replace(scored, scores=scores, parts={**scored.parts, "change": np.where(gained > 0, gained, np.nan)})


def _with_newer(scored: Scored, context: SearchContext) -> Scored:
    """The candidates, and what changes one of the best and is allowed, with no score of its own."""
    best = scored.labels[np.argsort(-scored.scores, kind="stable")[:MAX_FOLLOWED]]
    seen = set(scored.labels.tolist())
    known_at = context.query.filter.known_at
    while newer := context.records.newer_than(best, known_at):  # a chain of changes is followed to its end
        allowed = context.representatives(context.allowed.of(np.array(newer, np.int64))).tolist()
        best = np.array([label for label in dict.fromkeys(allowed) if label not in seen], np.int64)
        seen.update(best.tolist())
    if len(seen) == len(scored.labels):
        return scored
    labels = np.array(sorted(seen), np.int64)
    places = np.searchsorted(labels, scored.labels)
    scores = np.zeros(len(labels))
    scores[places] = scored.scores
    parts = {side: np.full(len(labels), np.nan) for side in scored.parts}
    for side, values in scored.parts.items():
        parts[side][places] = values
    return replace(scored, labels=labels, scores=scores, parts=parts)
