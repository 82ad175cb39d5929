"""Which sessions answer a question: by their best record, and by how much of the question is said anywhere in them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import numpy as np

from storage.search.engine import Hit, SearchIndexes
from storage.search.planner import Filter
from storage.search.tokens import Tokens

POOL = 100
KEYWORD_TURNS = 5
KEYWORD_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class SessionHit:
    """A session that was found. `parts` (`best`, `keyword`) add up to the score; `hits` are its records, best first."""

    session_id: str
    score: float
    parts: Mapping[str, float]
    hits: list[Hit]


def search_sessions(
    engine: SearchIndexes,
    cursor: duckdb.DuckDBPyConnection,
    text: str,
    vector: np.ndarray | None,
    filter: Filter,
    limit: int,
    *,
    tokens: Tokens | None = None,
) -> list[SessionHit]:
    """The sessions, best first. Records without a session are passed over."""
    grouped: dict[str, list[Hit]] = defaultdict(list)
    for hit in engine.search(cursor, text, vector, filter, POOL, tokens=tokens).hits:
        if hit.session_id is not None:
            grouped[hit.session_id].append(hit)
    spoken = engine.keyword_shares(cursor, text, filter)
    said: dict[str, list[float]] = defaultdict(list)
    for session_id, share in spoken:
        said[session_id].append(share)
    found = []
    for session_id, hits in grouped.items():
        parts = {"best": hits[0].score, "keyword": KEYWORD_SHARE * sum(said[session_id][:KEYWORD_TURNS])}
        found.append(SessionHit(session_id, sum(parts.values()), parts, hits))
    return sorted(found, key=lambda hit: (-hit.score, hit.session_id))[:limit]
