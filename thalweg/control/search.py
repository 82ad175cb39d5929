"""Searches from the command line: the tools' engine, and everything it knows about each hit.

What is no longer valid is left out (`processors.memory.read.live_search.py`), unless a moment is named at which it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC
from typing import TYPE_CHECKING, Any

from mcp_ingress.arguments import moment
from mcp_ingress.call import SEARCH_STAGES
from mcp_ingress.other_records import changed, repeated
from processors.embedding.query import encoded_query
from processors.injection.read.injections import read_injections
from processors.memory.read.live_search import search_live
from processors.memory.registry import CATEGORIES
from storage.search.captured import read_turns, turns_among
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter, TagFilter
from storage.search.records.hits import SearchHit
from storage.search.sessions import SessionHit, search_sessions
from storage.search.why import Explanation, explain
from storage.search.why_session import explain_session, is_session
from streams.clock import format_time
from streams.errors import Refused

if TYPE_CHECKING:
    import duckdb

    from thalweg.process.running import Running

LISTS = ("kinds", "toolsets", "session_ids", "domains", "entities")
MOMENTS = ("created_from", "created_before", "valid_at", "known_at")
MAX_LIMIT = 1000
ABOUT_SESSION = ("source", "project", "agent", "goal", "summary", "started_at", "ended_at")
HITS_OF_SESSION = 3
"""How many of a session's best records are shown; `records` says how many were considered."""


async def search_node(running: Running, request: Mapping[str, Any]) -> dict[str, Any]:
    """Hits with their sides: `{"hits": [...], "total", "degraded"}`.

    With `sessions`, instead of `hits` `{"sessions": [...]}`, each with what is known of it and its best records.
    Raises Refused for what cannot be asked.
    """
    text, filter, limit = _parse(running, request)
    lacks = await _lacks(running, request, filter.namespace)
    vector, tokens, space = await encoded_query(running.services.embedder, text)
    query, store = Query(text, vector, filter, limit, tokens, space, with_turns=True), running.store
    if request.get("sessions"):
        return await store.reader.run(lambda cursor: _sessions(cursor, store.indexes, query)) | lacks
    return await store.reader.run(lambda cursor: _hits(cursor, store.indexes, query)) | lacks


def _hits(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query) -> dict[str, Any]:
    found = search_live(cursor, indexes, query)
    said = read_turns(cursor, turns_among(found.hits))
    hits = [_hit_json(hit, said) for hit in found.hits]
    return {"hits": hits, "total": found.total, "degraded": found.degraded}


async def _lacks(running: Running, request: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Wait for what the request's `freshness` names, vectors included; then what the answer lacks.

    `stale` when that was not in time, `embedding_behind` (records that have no vectors yet), `behind` (what the store
    lacks of the log).
    """
    freshness = request.get("freshness")
    stages = SEARCH_STAGES if running.embedder is not None else ()
    is_fresh = freshness is None or await running.has_reached(freshness, stages)
    unembedded = await running.services.embedding_behind(namespace)
    stale = {} if is_fresh else {"stale": True}
    return stale | ({"embedding_behind": unembedded} if unembedded else {}) | running.lag.backlog().flag()


def _sessions(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query) -> dict[str, Any]:
    found = search_sessions(cursor, indexes, query)
    names = [hit.session_id for hit in found.sessions]
    rows = cursor.execute(
        "SELECT session_id, source, project, agent, goal, summary, started_at, ended_at FROM sessions "
        "WHERE namespace = ? AND session_id IN (SELECT unnest(?::VARCHAR[]))",
        [query.filter.namespace, names],
    ).fetchall()
    rows_by_id = {row[0]: dict(zip(ABOUT_SESSION, row[1:], strict=True)) for row in rows}
    best = [hit for session in found.sessions for hit in session.hits[:HITS_OF_SESSION]]
    said = read_turns(cursor, turns_among(best))
    return {
        "sessions": [_session_json(hit, rows_by_id.get(hit.session_id, {}), said) for hit in found.sessions],
        "total": found.total,
        "degraded": found.degraded,
    }


def _session_json(hit: SessionHit, row: Mapping[str, Any], said: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    times = {name: row.get(name) for name in ("started_at", "ended_at")}
    return {
        "session_id": hit.session_id,
        **{name: row.get(name) for name in ABOUT_SESSION},
        **{name: format_time(moment.replace(tzinfo=UTC)) if moment else None for name, moment in times.items()},
        "score": round(hit.score, 6),
        "parts": _parts(hit.parts),
        "records": len(hit.hits),
        "hits": [_hit_json(one, said) for one in hit.hits[:HITS_OF_SESSION]],
    }


async def why_node(running: Running, request: Mapping[str, Any]) -> dict[str, Any]:
    """Why one record, or session, is or is not among the hits.

    `injected`: the newest sessions that were given it without asking, `{session_id, hook, injected_at, score}`.
    """
    text, filter, limit = _parse(running, request)
    lacks = await _lacks(running, request, filter.namespace)
    vector, tokens, space = await encoded_query(running.services.embedder, text)
    query, indexes = Query(text, vector, filter, limit, tokens, space, with_turns=True), running.store.indexes
    identity = str(request["record_id"])

    def explanation(cursor: duckdb.DuckDBPyConnection) -> tuple[Explanation, list[dict[str, Any]]]:
        injected = read_injections(cursor, filter.namespace, identity)
        if is_session(cursor, filter.namespace, identity):
            return explain_session(cursor, indexes, query, identity), injected
        return explain(cursor, indexes, query, identity, search_live), injected

    found, injected = await running.store.reader.run(explanation)
    shown = {"sides": _sides(found.sides), "parts": _parts(found.parts), "injected": injected}
    return {**asdict(found), "record_id": identity, **shown} | lacks


def _parse(running: Running, request: Mapping[str, Any]) -> tuple[str, Filter, int]:
    text = str(request.get("query", "")).strip()
    if not text:
        raise Refused("The query is blank; say what to look for.")
    limit = int(request.get("limit", 10))
    if not 1 <= limit <= MAX_LIMIT:
        raise Refused(f"The limit {limit} is not between 1 and {MAX_LIMIT}.")
    chosen: dict[str, Any] = {name: tuple(request.get(name) or ()) for name in LISTS}
    if request.get("tags"):
        chosen["tags"] = TagFilter(tuple(request["tags"]), CATEGORIES)
    chosen |= {name: moment(name, request[name]) for name in MOMENTS if request.get(name)}
    if "known_at" in chosen:  # what was known then is what was valid then, as far as was known
        chosen.setdefault("valid_at", chosen["known_at"])
    filter = Filter(str(request.get("namespace") or running.settings.namespace), **chosen)
    return text, filter, limit


def _hit_json(hit: SearchHit, said: Mapping[int, Mapping[str, Any]]) -> dict[str, Any]:
    """`said`: by label who said a turn and where."""
    names = ("record_id", "kind", "toolset", "session_id", "domain", "text")
    return {
        **{name: getattr(hit, name) for name in names},
        "created_at": format_time(hit.created_at.replace(tzinfo=UTC)),
        "passage": None if hit.passage is None else {"start": hit.passage.start, "end": hit.passage.end},
        **said.get(hit.label, {}),
        **repeated(hit.also, hit.times),
        **changed(hit.earlier, hit.disputed_by, hit.tensions, hit.superseded_by),
        "score": round(hit.score, 6),
        "sides": _sides(hit.sides),
        "parts": _parts(hit.parts),
    }


def _sides(sides: Mapping[str, tuple[int, float]]) -> dict[str, dict[str, float]]:
    return {side: {"rank": rank, "raw": round(raw, 6)} for side, (rank, raw) in sides.items()}


def _parts(parts: Mapping[str, float]) -> dict[str, float]:
    return {part: round(added, 6) for part, added in parts.items()}
