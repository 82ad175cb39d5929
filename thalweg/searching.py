"""Searches that people ask of a running node: the same engine as the tools', with everything that it knows about each hit."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from processors.embedding.query import encoded_query
from storage.search.engine import Hit
from storage.search.planner import Filter
from storage.search.sessions import SessionHit, search_sessions
from storage.search.why import explain
from streams.clock import format_time
from streams.errors import Refused

if TYPE_CHECKING:
    import duckdb

    from thalweg.node import Node

LISTS = ("kinds", "toolsets", "session_ids", "domains", "tags", "entities")
MOMENTS = ("created_from", "created_before", "valid_at", "known_at")
MAX_LIMIT = 1000
ABOUT_SESSION = ("source", "project", "agent", "goal", "summary", "started_at", "ended_at")
SHOWN_OF_SESSION = 3
"""So many of a session's best records are shown; `records` says how many were looked at."""


async def search_node(node: Node, request: Mapping[str, Any]) -> dict[str, Any]:
    """Hits with their sides: `{"hits": [...], "total", "degraded"}`; with `sessions` instead of `hits` `{"sessions": [...]}`, each with
    what is known of it and its best records. Raises Refused for what cannot be asked."""
    text, filter, limit = _asked(node, request)
    vector, tokens, space = await encoded_query(node.embedder, text)
    if request.get("sessions"):
        return await node.reader.run(lambda cursor: _sessions(cursor, node, text, vector, filter, limit, tokens=tokens, space=space))
    found = await node.reader.run(lambda cursor: node.indexes.search(cursor, text, vector, filter, limit, tokens=tokens, space=space))
    return {"hits": [_shown(hit) for hit in found.hits], "total": found.total, "degraded": found.degraded}


def _sessions(
    cursor: duckdb.DuckDBPyConnection, node: Node, text: str, vector: Any, filter: Filter, limit: int, **model: Any
) -> dict[str, Any]:
    found = search_sessions(node.indexes, cursor, text, vector, filter, limit, **model)
    names = [hit.session_id for hit in found.sessions]
    rows = cursor.execute(
        "SELECT session_id, source, project, agent, goal, summary, started_at, ended_at FROM sessions "
        "WHERE namespace = ? AND session_id IN (SELECT unnest(?::VARCHAR[]))",
        [filter.namespace, names],
    ).fetchall()
    known = {row[0]: dict(zip(ABOUT_SESSION, row[1:], strict=True)) for row in rows}
    return {
        "sessions": [_shown_session(hit, known.get(hit.session_id, {})) for hit in found.sessions],
        "total": found.total,
        "degraded": found.degraded,
    }


def _shown_session(hit: SessionHit, known: Mapping[str, Any]) -> dict[str, Any]:
    times = {name: known.get(name) for name in ("started_at", "ended_at")}
    return {
        "session_id": hit.session_id,
        **{name: known.get(name) for name in ABOUT_SESSION},
        **{name: format_time(moment.replace(tzinfo=UTC)) if moment else None for name, moment in times.items()},
        "score": round(hit.score, 6),
        "parts": _parts(hit.parts),
        "records": len(hit.hits),
        "hits": [_shown(one) for one in hit.hits[:SHOWN_OF_SESSION]],
    }


async def why_node(node: Node, request: Mapping[str, Any]) -> dict[str, Any]:
    """What `storage.search.why.explain` says about one record."""
    text, filter, limit = _asked(node, request)
    vector, tokens, space = await encoded_query(node.embedder, text)
    search = functools.partial(node.indexes.search, tokens=tokens, space=space)
    record_id = str(request["record_id"])
    found = await node.reader.run(lambda cursor: explain(cursor, node.indexes, text, vector, filter, limit, record_id, search))
    return {**asdict(found), "record_id": record_id, "sides": _sides(found.sides), "parts": _parts(found.parts)}


def _asked(node: Node, request: Mapping[str, Any]) -> tuple[str, Filter, int]:
    text = str(request.get("query", "")).strip()
    if not text:
        raise Refused("The query is blank; say what to look for.")
    limit = int(request.get("limit", 10))
    if not 1 <= limit <= MAX_LIMIT:
        raise Refused(f"The limit {limit} is not within 1 and {MAX_LIMIT}.")
    chosen: dict[str, Any] = {name: tuple(request.get(name) or ()) for name in LISTS}
    chosen |= {name: moment(name, request[name]) for name in MOMENTS if request.get(name)}
    filter = Filter(str(request.get("namespace") or node.settings.namespace), **chosen)
    return text, filter, limit


def moment(name: str, text: str) -> datetime:
    """A date or an ISO-8601 time, UTC unless it says otherwise. Raises Refused."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"`{name}` is {text!r}; a date YYYY-MM-DD or a time such as 2026-01-05T12:00:00Z is expected.") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _shown(hit: Hit) -> dict[str, Any]:
    names = ("record_id", "kind", "toolset", "session_id", "domain", "text")
    return {
        **{name: getattr(hit, name) for name in names},
        "created_at": format_time(hit.created_at.replace(tzinfo=UTC)),
        "score": round(hit.score, 6),
        "sides": _sides(hit.sides),
        "parts": _parts(hit.parts),
    }


def _sides(sides: Mapping[str, tuple[int, float]]) -> dict[str, dict[str, float]]:
    return {side: {"rank": rank, "raw": round(raw, 6)} for side, (rank, raw) in sides.items()}


def _parts(parts: Mapping[str, float]) -> dict[str, float]:
    return {part: round(added, 6) for part, added in parts.items()}
