"""Which sessions answer a question: by their best record, and by how much of the question is said anywhere in them.

score = best record, whether it asks or tells
      + 0.1 · BM25 with the session as document and its records as the words' places
      + 0.2 · late interaction with the session as document: each token of the question met by any record of it
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import duckdb
import numpy as np

from storage.search.engine import Hit, SearchIndexes
from storage.search.records.filter import Filter, predicate
from storage.search.vectors.token_vectors import Tokens
from storage.search.words.keyword_index import K1, B

POOL = 60
SESSIONS = 32
"""So many sessions, those that the sides' best records are of, are read whole."""
EVERY_HIT = 5_000
KEYWORD_SHARE = 0.1
LATE_SHARE = 0.2
HOLDERS = 1_000
"""Of a word that more records hold than these, the rest are not counted: it says little."""


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that was found. `parts` (`best`, `keyword`, `late`) add up to the score; `hits` are its records, best first."""

    session_id: str
    score: float
    parts: Mapping[str, float]
    hits: list[Hit]


@dataclass(frozen=True, slots=True)
class SessionResult:
    """`ranked`: all that were found, best first, of which `limit` were asked for. `degraded`: what was missing, a sentence, or None."""

    ranked: list[SessionHit]
    limit: int
    degraded: str | None = None

    @property
    def sessions(self) -> list[SessionHit]:
        """What was asked for."""
        return self.ranked[: self.limit]

    @property
    def total(self) -> int:
        """How many were found, before the limit."""
        return len(self.ranked)


def search_sessions(
    engine: SearchIndexes,
    cursor: duckdb.DuckDBPyConnection,
    text: str,
    vector: np.ndarray | None,
    filter: Filter,
    limit: int,
    *,
    tokens: Tokens | None = None,
    space: str | None = None,
) -> SessionResult:
    """The sessions, best first. Records without a session are passed over; arguments are those of `SearchIndexes.search`."""
    grouped: dict[str, list[Hit]] = defaultdict(list)
    most = max(limit, SESSIONS)
    # a session whose records are all far is read too, as long as there are few: what they say together may answer
    records = engine.search(
        cursor, text, vector, filter, EVERY_HIT, min_cosine=0.0, pool=POOL, tokens=tokens, space=space, sessions=most
    )
    for hit in records.hits:
        if hit.session_id is not None:
            grouped[hit.session_id].append(hit)
    said = score_sessions(engine, cursor, text, filter)
    read = _read_sessions(engine, tokens, grouped) if tokens is not None else {}
    found = []
    for session_id in grouped | dict.fromkeys(said):
        hits = grouped.get(session_id, [])
        parts = {
            "best": _told(hits),
            "keyword": KEYWORD_SHARE * said.get(session_id, 0.0),
            "late": LATE_SHARE * read.get(session_id, 0.0),
        }
        found.append(SessionHit(session_id, sum(parts.values()), parts, hits))
    return SessionResult(sorted(found, key=lambda hit: (-hit.score, hit.session_id)), limit, records.degraded)


def _told(hits: Iterable[Hit]) -> float:
    """The best record's score without what is taken off for asking: a question shows as well what was talked about."""
    return max((hit.score - hit.parts.get("asking", 0.0) for hit in hits), default=0.0)


def _read_sessions(engine: SearchIndexes, tokens: Tokens, sessions: Mapping[str, Sequence[Hit]]) -> dict[str, float]:
    """session -> how well its records together match the question's tokens, 0 to 1."""
    late = engine.late
    if late.tokens is None:
        return {}
    weights = late.tokens.weights(tokens)
    matches = late.matches(
        tokens, weights, np.array([hit.label for hits in sessions.values() for hit in hits], np.int64)
    )
    read: dict[str, float] = {}
    start = 0
    for session_id, hits in sessions.items():
        own = slice(start, start + len(hits))
        rows = matches.rows[own][matches.is_read[own]]
        if len(rows):
            read[session_id] = max(0.0, float(np.max(rows, axis=0) @ weights))
        start = own.stop
    return read


def score_sessions(
    engine: SearchIndexes, cursor: duckdb.DuckDBPyConnection, text: str, filter: Filter
) -> dict[str, float]:
    """session -> BM25 with the session as document and its records as words, as a share of the most that the text can score."""
    condition = predicate(filter)
    sizes: dict[str, int] = dict(
        cursor.execute(
            f"SELECT session_id, count(*) FROM documents d WHERE {condition.sql} AND session_id IS NOT NULL GROUP BY session_id",
            condition.parameters,
        ).fetchall()
    )
    if not sizes:
        return {}
    mean = sum(sizes.values()) / len(sizes)
    most = 0.0
    scores: dict[str, float] = defaultdict(float)
    for labels in engine.keyword_holders(cursor, text, filter, HOLDERS).values():
        counts = Counter(session for label in labels if (session := engine.late.timelines.session(label)) in sizes)
        rarity = math.log(1 + (len(sizes) - len(counts) + 0.5) / (len(counts) + 0.5))
        most += rarity * (K1 + 1) if counts else 0.0
        for session, count in counts.items():
            assert session is not None, "a session that has a size has a name"
            scores[session] += rarity * count * (K1 + 1) / (count + K1 * (1 - B + B * sizes[session] / mean))
    return {session: score / most for session, score in scores.items()}
