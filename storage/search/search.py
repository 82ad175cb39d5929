"""One query: filter first, then every side, then one ranking over the candidates of all.

It walks down once: from the indexes that are kept equal to the tables (`index_set`) it takes the words, one space and
the records, finds what each side has, has the candidates scored (`ranking/rank`) and reads the best.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import wait
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import numpy as np

from storage.search.captured import joined, turns_asked
from storage.search.index_set import IndexSet
from storage.search.query import MIN_COSINE, MIN_COSINE_RANKED, Query
from storage.search.question import matter_of
from storage.search.ranking.context import Scored, SearchContext
from storage.search.ranking.fusion import WEIGHTS, ordered
from storage.search.ranking.newest import newest_first, read_changes
from storage.search.ranking.rank import fuse_ranks, rank
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchResult
from storage.search.records.label_map import places_in
from storage.search.records.matches import DocumentMatches

KEYWORD_DEPTH = 400
"""This many BM25 scores count as evidence; candidates are the best of them only."""
MAX_OTHERS = 10
"""This many other records that state the same as a hit are named."""
CATCH_UP_S = 0.15
"""A search waits this long for what was captured just now."""
NOT_WHOLE = "What was captured in the last seconds is being indexed: some of it is not found yet."
_NO_MATCHES = DocumentMatches([], {})


@dataclass(frozen=True, slots=True)
class Keywords:
    """What the keyword sides of memories and, where they were asked for, of turns find."""

    memories: DocumentMatches
    turns: DocumentMatches | None = None


def prefetch(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, text: str, filter: Filter, *, with_turns: bool = False
) -> Keywords:
    """Search the keyword sides while the text is encoded, and bring the caches of the tables up to date."""
    memories = _prefetch(cursor, indexes, text, filter)
    turns = indexes.searched_turns(filter.namespace) if with_turns else None
    if turns is None or not turns.catch_up(CATCH_UP_S):  # else what comes meanwhile would be missing
        return Keywords(memories)
    return Keywords(memories, turns.threads.submit(lambda own: _prefetch(own, turns, text, filter)).result())


def _prefetch(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, text: str, filter: Filter) -> DocumentMatches:
    with indexes.searching():
        allowed = indexes.records.allowed(cursor, filter)
        keywords = indexes.words.search(cursor, matter_of(text), allowed, KEYWORD_DEPTH, alone=False)
        indexes.records.follow_relations(cursor)
        return keywords


def search(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: Keywords | None = None
) -> SearchResult:
    """Hybrid search. `prefetched`: what `prefetch` gave for this text and filter.

    Turns of captured sessions are searched by themselves, at the same time, and come between the others by their
    scores.
    """
    memories, of_turns = (None, None) if prefetched is None else (prefetched.memories, prefetched.turns)
    if (turns := turns_asked(indexes, query)) is None:
        return _search(cursor, indexes, query, memories)
    is_whole = turns.catch_up(CATCH_UP_S)
    beside = turns.threads.submit(lambda own: _search(own, turns, query, of_turns))
    try:
        found = _search(cursor, indexes, query, memories)
    finally:
        wait([beside])  # it reads the same indexes: nothing of a search goes on behind its answer
    found = joined(found, beside.result(), query)
    return found if is_whole else replace(found, degraded=found.degraded or NOT_WHOLE)


def _search(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: DocumentMatches | None
) -> SearchResult:
    """The best of memories, or of turns.

    With tokens, or where nothing is embedded, the candidates are ranked by evidence (`ranking/weights`); else, or with
    weights, by reciprocal-rank fusion. What is not embedded yet stands among what is where its words put it.
    """
    size, vector = query.pool_size, query.vector
    with indexes.searching():
        records, words, space = indexes.records, indexes.words, indexes.space(query.space)
        records.follow_relations(cursor)  # what was merged is one cluster
        name = query.space or ("" if indexes.model is None else indexes.model.space)
        context = SearchContext(cursor, query, records.allowed(cursor, query.filter), words, space, records, name)
        neighbours = _NO_MATCHES if vector is None else context.nearest(vector, size)
        has_tokens = query.tokens is not None and space.has_tokens
        can_rank = space is indexes.space() and (has_tokens or not neighbours.matches)
        is_ranked = query.weights is None and (vector is None or can_rank)
        depth = KEYWORD_DEPTH if is_ranked else size
        if prefetched is not None and depth <= KEYWORD_DEPTH and (vector is not None or words.is_ready):
            keywords = prefetched
        else:
            keywords = words.search(cursor, query.matter, context.allowed, depth, alone=vector is None)
        floor = query.min_cosine if query.min_cosine is not None else MIN_COSINE_RANKED if is_ranked else MIN_COSINE
        nearest = [match for match in neighbours.matches if match[1] >= floor]
        matched = context.distinct(keywords.matches[:depth])
        if is_ranked:
            scored = rank(context, nearest, matched)
        else:
            weights = WEIGHTS if query.weights is None else query.weights
            scored = fuse_ranks(context, nearest, matched, weights)
        scored = newest_first(scored, context)
        return _result(context, scored, neighbours.fits | keywords.fits | scored.fits, _degraded(indexes, query))


def _result(context: SearchContext, scored: Scored, fits: Mapping[int, int], degraded: str | None) -> SearchResult:
    """The best of the candidates, read from the table."""
    query, passages, documents = context.query, context.records.passages, context.records.documents
    hits_by_label = documents.best(context.cursor, query.filter.namespace, scored.labels, scored.scores, query.limit)
    places = places_in(scored.labels, np.fromiter(hits_by_label, np.int64, len(hits_by_label)))
    scores = dict(zip(hits_by_label, scored.scores[places].tolist(), strict=True))
    parts = {
        side: dict(zip(hits_by_label, values[places].tolist(), strict=True)) for side, values in scored.parts.items()
    }
    sides = {
        side: {label: (place, raw) for place, (label, raw) in enumerate(matches, 1) if label in hits_by_label}
        for side, matches in scored.sides.items()
    }
    best = ordered(scores, {label: (hit.created_at, hit.record_id) for label, hit in hits_by_label.items()})
    labels = best[: query.limit]
    others = _others(context, labels)
    hits = [
        replace(
            hits_by_label[label],
            score=scores[label],
            sides={side: places[label] for side, places in sides.items() if label in places},
            parts={side: values[label] for side, values in parts.items() if not math.isnan(values[label])},
            passage=passages.passage(fits.get(label, label)),
            coverage=scored.coverage.get(label),
            **others[label],
            **_changes(context, label),
        )
        for label in labels
    ]
    return SearchResult(hits, len(scored.labels), degraded)


def _others(context: SearchContext, labels: Sequence[int]) -> dict[int, dict[str, Any]]:
    """By label what else states the same as a hit, and how often it was stated."""
    if not context.query.distinct:
        return {label: {} for label in labels}
    clusters, allowed = context.records.clusters, [context.allowed.labels]
    stated = clusters.statements(labels, allowed, MAX_OTHERS, excerpts=context.with_excerpts)
    names = context.records.documents.names_of(context.cursor, [each.others for each in stated])
    return {label: {"also": also, "times": each.times} for label, also, each in zip(labels, names, stated, strict=True)}


def _changes(context: SearchContext, label: int) -> dict[str, Any]:
    """What a hit changes, and what changes it."""
    earlier, disputed_by = read_changes(context.cursor, context.records, context.query.filter.namespace, label)
    return {"earlier": earlier, "disputed_by": disputed_by}


def _degraded(indexes: IndexSet, query: Query) -> str | None:
    """What the result lacks, as a sentence."""
    if indexes.model is None:
        return "No embedder is configured: results come from keywords and relations only."
    if query.vector is None:
        return "The embedder did not answer: results come from keywords and relations only."
    if indexes.words.lacks_old_documents:
        return "The keyword index is being rebuilt: until it is, older texts are found by their vectors only."
    return None
