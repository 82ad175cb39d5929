"""Search for sessions: by their best record, and by how much of the question is said anywhere in them.

score = best record, whether it asks or tells
      + 0.1 · BM25 with the session as document and its records as the words' places
      + 0.2 · late interaction with the session as document: each token of the question met by any record of it
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import duckdb
import numpy as np

from storage.search.captured import CAPTURED, reading, turns_asked
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import predicate
from storage.search.records.hits import SearchHit
from storage.search.search import CATCH_UP_S, NOT_WHOLE, search
from storage.search.words.bm25 import K1, bm25, rarity

POOL = 60
SESSIONS = 32
"""This many sessions, those of the sides' best records, are read whole."""
EVERY_HIT = 5_000
KEYWORD_SHARE = 0.1
LATE_SHARE = 0.2
MAX_POSTINGS = 1_000
"""Of a word that more records have, the rest are not counted: it says little."""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that was found. `parts` (`best`, `keyword`, `late`) sum to the score; `hits`: records, best first."""

    session_id: str
    score: float
    parts: Mapping[str, float]
    hits: list[SearchHit]


@dataclass(frozen=True, slots=True)
class SessionResult:
    """`ranked`: all that were found, best first. `degraded`: what was missing, as a sentence, or None."""

    ranked: list[SessionHit]
    limit: int
    degraded: str | None = None

    @property
    def sessions(self) -> list[SessionHit]:
        """The best, up to the limit."""
        return self.ranked[: self.limit]

    @property
    def total(self) -> int:
        """How many were found, before the limit."""
        return len(self.ranked)


def search_sessions(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query) -> SessionResult:
    """The sessions, best first: by their memories or by their turns. What has no session is passed over."""
    found = _search_sessions(cursor, indexes, query)
    if (turns := turns_asked(indexes, query)) is None:
        return found
    is_whole = turns.catch_up(CATCH_UP_S)
    with reading(cursor, CAPTURED):
        others = _search_sessions(cursor, turns, query)
    best: dict[str, SessionHit] = {}
    for hit in sorted([*found.ranked, *others.ranked], key=lambda hit: (-hit.score, hit.session_id)):
        known = best.get(hit.session_id)
        best[hit.session_id] = (
            hit if known is None else replace(known, hits=sorted([*known.hits, *hit.hits], key=lambda one: -one.score))
        )
    return SessionResult(
        list(best.values()), query.limit, found.degraded or others.degraded or (None if is_whole else NOT_WHOLE)
    )


def _search_sessions(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query) -> SessionResult:
    grouped: dict[str, list[SearchHit]] = defaultdict(list)
    # a session whose records are all far is read too, as long as there are few: what they say together may answer
    of_records = replace(
        query,
        limit=EVERY_HIT,
        min_cosine=0.0,
        pool=POOL,
        sessions=max(query.limit, SESSIONS),
        weights=None,
        distinct=False,
        with_turns=False,
    )
    records = search(cursor, indexes, of_records)
    for hit in records.hits:
        if hit.session_id is not None:
            grouped[hit.session_id].append(hit)
    by_words = _score_words(cursor, indexes, query)
    by_tokens = _score_tokens(indexes, query, grouped)
    found = []
    for session_id in grouped | dict.fromkeys(by_words):
        hits = grouped.get(session_id, [])
        parts = {
            "best": _best_record(hits),
            "keyword": KEYWORD_SHARE * by_words.get(session_id, 0.0),
            "late": LATE_SHARE * by_tokens.get(session_id, 0.0),
        }
        found.append(SessionHit(session_id, sum(parts.values()), parts, hits))
    return SessionResult(sorted(found, key=lambda hit: (-hit.score, hit.session_id)), query.limit, records.degraded)


def _best_record(hits: Iterable[SearchHit]) -> float:
    """The best score without what is taken off for questions: they show as well what was talked about."""
    return max((hit.score - hit.parts.get("asking", 0.0) for hit in hits), default=0.0)


def _score_tokens(indexes: IndexSet, query: Query, sessions: Mapping[str, Sequence[SearchHit]]) -> dict[str, float]:
    """session -> how well its records together match the query's tokens, 0 to 1."""
    if query.tokens is None or query.vector is None:
        return {}
    labels = np.array([hit.label for hits in sessions.values() for hit in hits], np.int64)
    matches = indexes.space(query.space).match_tokens(query.tokens, query.vector, labels)
    if matches is None:
        return {}
    scores: dict[str, float] = {}
    start = 0
    for session_id, hits in sessions.items():
        own = slice(start, start + len(hits))
        rows = matches.rows[own][matches.is_read[own]]
        if len(rows):
            scores[session_id] = max(0.0, float(np.max(rows, axis=0) @ matches.weights))
        start = own.stop
    return scores


def _score_words(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query) -> dict[str, float]:
    """session -> BM25 with its records as its words, as a share of the most that the text can score."""
    condition = predicate(query.filter)
    sizes: dict[str, int] = dict(
        cursor.execute(
            f"SELECT session_id, count(*) FROM documents d WHERE {condition.sql} "
            "AND session_id IS NOT NULL GROUP BY session_id",
            condition.parameters,
        ).fetchall()
    )
    if not sizes:
        return {}
    mean = sum(sizes.values()) / len(sizes)
    most = 0.0
    scores: dict[str, float] = defaultdict(float)
    session_of = indexes.records.timelines.session
    allowed = indexes.records.allowed(cursor, query.filter)
    for labels in indexes.words.postings(query.matter, allowed, MAX_POSTINGS).values():
        counts = Counter(session for label in labels if (session := session_of(label)) in sizes)
        most += rarity(len(sizes), len(counts)) * (K1 + 1) if counts else 0.0
        for session, count in counts.items():
            assert session is not None, "a session that has a size has a name"
            scores[session] += bm25(count, sizes[session], mean, len(sizes), len(counts))
    return {session: score / most for session, score in scores.items()}
