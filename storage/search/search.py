"""One query: filter first, then every side, then one ranking over the candidates of all.

It walks down once: from the indexes that are kept equal to the tables (`index_set`) it takes the words, one space and
the records, finds what each side has, has the candidates scored (`ranking/rank`) and reads the best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from storage.search.captured import turns_asked
from storage.search.index_set import IndexSet
from storage.search.query import MIN_COSINE, MIN_COSINE_RANKED, Query
from storage.search.question import matter_of
from storage.search.ranked_list import RankedList, RankedRecords
from storage.search.ranking.context import SearchContext
from storage.search.ranking.fusion import WEIGHTS
from storage.search.ranking.newest import newest_first
from storage.search.ranking.pool import shares
from storage.search.ranking.rank import fuse_ranks, rank
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchResult
from storage.search.records.matches import DocumentMatches, Matches

KEYWORD_DEPTH = 400
"""This many BM25 scores count as evidence; candidates are the best of them only."""
CATCH_UP_S = 0.15
"""A search waits this long for what was captured just now."""
NOT_WHOLE = "What was captured in the last seconds is being indexed: some of it is not found yet."
_NO_MATCHES = DocumentMatches([], {})


@dataclass(frozen=True, slots=True)
class Keywords:
    """What the keyword sides of memories and, where they were asked for, of turns find."""

    memories: DocumentMatches | None = None
    turns: DocumentMatches | None = None


def prefetch(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, text: str, filter: Filter) -> DocumentMatches:
    """Search the keyword side while the text is encoded, and bring the caches of the tables up to date."""
    allowed = indexes.records.allowed(cursor, filter)
    keywords = indexes.words.search(cursor, matter_of(text), allowed, KEYWORD_DEPTH, alone=False)
    indexes.records.follow_relations(cursor)
    return keywords


def prefetch_turns(indexes: IndexSet, text: str, filter: Filter) -> DocumentMatches | None:
    """As `prefetch`, of turns. None leaves it to the search: there are none, or some are not indexed yet."""
    turns = indexes.searched_turns(filter.namespace)
    if turns is None or not turns.catch_up(CATCH_UP_S):
        return None
    return turns.cursors.run(lambda own: prefetch(own, turns, text, filter))


def search(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: Keywords | None = None
) -> SearchResult:
    """Hybrid search: the best of what `ranked` finds."""
    found = ranked(cursor, indexes, query, prefetched)
    return SearchResult(found.read(query.limit), found.total, found.degraded)


def ranked(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: Keywords | None = None
) -> RankedList:
    """Everything that the sides find, ranked. `prefetched`: what `prefetch` and `prefetch_turns` gave for it.

    Turns of captured sessions are searched by themselves, afterwards (at the same time takes as long: both want the
    interpreter), and come between the others by their scores; memories and turns share the candidates. Rows are read
    with the cursor, and so on its thread.
    """
    known = prefetched or Keywords()
    degraded = _degraded(indexes, query)
    if (turns := turns_asked(indexes, query)) is None:
        with indexes.serving():
            return RankedList(_scored(_find(cursor, indexes, query, known.memories)), degraded=degraded)
    was_in_vain = prefetched is not None and known.turns is None
    # once is enough: other searches wait in line for this one
    is_whole = turns.catch_up(0.0 if was_in_vain else CATCH_UP_S)

    def both(own: duckdb.DuckDBPyConnection) -> tuple[RankedRecords, RankedRecords]:
        with indexes.serving():
            found = _find(cursor, indexes, query, known.memories), _find(own, turns, query, known.turns)
            of_memories, said = (_scored(some) for some in _sharing(query, *found))
            return of_memories, replace(said, run=turns.cursors.run)

    degraded = degraded or _degraded(turns, query) or (None if is_whole else NOT_WHOLE)
    return RankedList(*turns.cursors.run(both), degraded)


@dataclass(frozen=True, slots=True)
class _Sides:
    """What the sides of memories, or of turns, have found, and how it is to be ranked.

    `keywords` are all that count as evidence. `fits`: as those of `Scored`.
    """

    context: SearchContext
    nearest: Matches
    keywords: Matches
    is_ranked: bool
    fits: dict[int, int]


def _find(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: DocumentMatches | None
) -> _Sides:
    """What the sides find, one match for each cluster."""
    size, vector = query.pool_size, query.vector
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
    return _Sides(context, nearest, matched, is_ranked, neighbours.fits | keywords.fits)


def _sharing(query: Query, memories: _Sides, turns: _Sides) -> Sequence[_Sides]:
    """Both, with as many candidates together as one alone, where they are ranked by evidence."""
    both = (memories, turns)
    if not (memories.is_ranked and turns.is_ranked):
        return both
    cosines = [np.array([cosine for _, cosine in found.nearest]) for found in both]
    words = [_shares_of_most(found) for found in both]
    own = shares(query.pool_size, cosines, words)
    return [replace(found, context=replace(found.context, share=share)) for found, share in zip(both, own, strict=True)]


def _shares_of_most(found: _Sides) -> np.ndarray:
    """(n,) scores of what words found, as shares of the most that the query can score."""
    query, words = found.context.query, found.context.words
    most = words.ceiling(query.matter, query.filter.namespace) or 1.0
    return np.array([score for _, score in found.keywords]) / most


def _scored(found: _Sides) -> RankedRecords:
    """The candidates, scored.

    With tokens, or where nothing is embedded, they are ranked by evidence (`ranking/weights`); else, or with weights,
    by reciprocal-rank fusion. What is not embedded yet stands among what is where its words put it.
    """
    context, weights = found.context, found.context.query.weights
    if found.is_ranked:
        scored = rank(context, found.nearest, found.keywords)
    else:
        scored = fuse_ranks(context, found.nearest, found.keywords, WEIGHTS if weights is None else weights)
    scored = newest_first(scored, context)
    fits = found.fits | scored.fits
    return RankedRecords(context, replace(scored, fits=fits), lambda read: read(context.cursor))


def _degraded(indexes: IndexSet, query: Query) -> str | None:
    """What the result lacks, as a sentence."""
    if indexes.model is None:
        return "No embedder is configured: results come from keywords and relations only."
    if query.vector is None:
        return "The embedder did not answer: results come from keywords and relations only."
    if indexes.words.lacks_old_documents:
        return "The keyword index is being rebuilt: until it is, older texts are found by their vectors only."
    return None
