"""What the conversation tools read: sessions, exchanges and patterns as objects of answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb
import orjson

from processors.valence.rules.patterns import ARCHIVED, ARCHIVED_AFTER, EMERGING, ESTABLISHED, FADING, FADING_AFTER
from streams.clock import format_time

_SESSIONS = """(
    SELECT session_id, platform, project_context, status, summary, themes, started_at, ended_at, claude_session_id,
           external_room_id, metadata, exchange_count, insight_count,
           CASE WHEN origin = 'tool' THEN 'valence' ELSE platform END AS source, namespace
    FROM conversations
    UNION ALL
    SELECT session_id, source, project, CASE WHEN ended_at IS NULL THEN 'active' ELSE 'completed' END, summary,
           '[]'::JSON, started_at, ended_at, NULL, NULL,
           json_object('agent', agent, 'goal', goal, 'parent_session_id', parent_session_id), 0, NULL, source, namespace
    FROM sessions s
    WHERE (source <> 'talos' OR goal IS NOT NULL)
      AND NOT EXISTS (FROM conversations c WHERE c.namespace = s.namespace AND c.session_id = s.session_id))"""
"""Sessions of every kind: conversations, and those without exchanges. One that calls only name was never opened."""
_SESSION = """session_id, platform, project_context, status, summary, themes, started_at, ended_at, claude_session_id,
external_room_id, metadata, started_at, exchange_count, insight_count, source"""
_SESSION_FIELDS = [
    "id",
    "platform",
    "project_context",
    "status",
    "summary",
    "themes",
    "started_at",
    "ended_at",
    "claude_session_id",
    "external_room_id",
    "metadata",
    "created_at",
    "exchange_count",
    "insight_count",
    "source",
]
_EXCHANGE = "exchange_id, session_id, sequence, role, content, created_at, tokens_approx, tool_uses"
_EXCHANGE_FIELDS = ["id", "session_id", "sequence", "role", "content", "created_at", "tokens_approx", "tool_uses"]
_PATTERN = (
    "pattern_id, type, description, evidence, occurrence_count, confidence, status, first_observed_at, last_observed_at"
)
_PATTERN_FIELDS = [
    "id",
    "type",
    "description",
    "evidence",
    "occurrence_count",
    "confidence",
    "status",
    "first_observed",
    "last_observed",
]
_JSON: dict[str, Any] = {"themes": [], "metadata": {}, "tool_uses": [], "evidence": []}

Row = dict[str, Any]
Cursor = duckdb.DuckDBPyConnection


def find_session(cursor: Cursor, namespace: str, session_id: str) -> Row | None:
    """The session of whatever kind; None when there is none."""
    rows = cursor.execute(
        f"SELECT {_SESSION} FROM {_SESSIONS} WHERE namespace = ? AND session_id = ?", [namespace, session_id]
    ).fetchall()
    return _row(_SESSION_FIELDS, rows[0]) if rows else None


def list_sessions(
    cursor: Cursor, namespace: str, filters: Mapping[str, str | None], limit: int
) -> tuple[list[Row], int]:
    """Sessions whose columns pass the filters (None: any value), newest first, and how many match in all."""
    conditions = {name: value for name, value in filters.items() if value is not None}
    where = " AND ".join(["namespace = ?", *(f"{name} = ?" for name in conditions)])
    return _page(
        cursor,
        f"SELECT {_SESSION}, count(*) OVER () FROM {_SESSIONS} WHERE {where} "
        "ORDER BY started_at DESC, session_id LIMIT ?",
        f"SELECT count(*) FROM {_SESSIONS} WHERE {where}",
        [namespace, *conditions.values()],
        [limit],
        _SESSION_FIELDS,
    )


def list_exchanges(cursor: Cursor, namespace: str, session_id: str, limit: int, offset: int) -> tuple[list[Row], int]:
    """Exchanges of the session by sequence, and how many it has."""
    where = "namespace = ? AND session_id = ?"
    return _page(
        cursor,
        f"SELECT {_EXCHANGE}, count(*) OVER () FROM exchanges WHERE {where} ORDER BY sequence LIMIT ? OFFSET ?",
        f"SELECT count(*) FROM exchanges WHERE {where}",
        [namespace, session_id],
        [limit, offset],
        _EXCHANGE_FIELDS,
    )


def last_exchanges(cursor: Cursor, namespace: str, session_id: str, limit: int) -> list[Row]:
    """The last exchanges of the session, in the order in which they were said."""
    query = f"SELECT {_EXCHANGE} FROM exchanges WHERE namespace = ? AND session_id = ? ORDER BY sequence DESC LIMIT ?"
    rows = cursor.execute(query, [namespace, session_id, limit]).fetchall()
    return [_row(_EXCHANGE_FIELDS, row) for row in reversed(rows)]


def unknown_sessions(cursor: Cursor, namespace: str, session_ids: Sequence[str]) -> list[str]:
    """The ids that are not in the store, in their order."""
    rows = cursor.execute(
        "SELECT session_id FROM conversations WHERE namespace = ? AND session_id IN (SELECT unnest(?::VARCHAR[]))",
        [namespace, list(session_ids)],
    ).fetchall()
    known = {session_id for (session_id,) in rows}
    return [session_id for session_id in session_ids if session_id not in known]


_AGED = f"""
SELECT * REPLACE (CASE WHEN last_observed_at <= $archived THEN '{ARCHIVED}'
                       WHEN status = '{ESTABLISHED}' AND last_observed_at <= $established THEN '{FADING}'
                       WHEN status = '{EMERGING}' AND last_observed_at <= $emerging THEN '{FADING}'
                       ELSE status END AS status)
FROM vkb_patterns WHERE namespace = $namespace"""


def _ages(now: datetime) -> dict[str, datetime]:
    """The last moments at which a pattern that is fading or archived by now may have been observed."""
    moment = now.astimezone(UTC).replace(tzinfo=None)
    return {
        "archived": moment - ARCHIVED_AFTER,
        "established": moment - FADING_AFTER[ESTABLISHED],
        "emerging": moment - FADING_AFTER[EMERGING],
    }


def find_pattern(cursor: Cursor, namespace: str, pattern_id: str, now: datetime) -> Row | None:
    """The pattern with its status by now; None when there is none."""
    parameters = {"namespace": namespace, "pattern_id": pattern_id, **_ages(now)}
    rows = cursor.execute(f"SELECT {_PATTERN} FROM ({_AGED} AND pattern_id = $pattern_id)", parameters).fetchall()
    return _row(_PATTERN_FIELDS, rows[0]) if rows else None


def list_patterns(
    cursor: Cursor,
    namespace: str,
    now: datetime,
    *,
    kind: str | None,
    status: str | None,
    min_confidence: float,
    limit: int,
) -> tuple[list[Row], int]:
    """Patterns that are not archived, the most often met first, and how many match in all."""
    where = (
        f"status <> '{ARCHIVED}' AND confidence >= $least "
        "AND coalesce(type = $kind, true) AND coalesce(status = $status, true)"
    )
    parameters = {"namespace": namespace, "kind": kind, "status": status, "least": min_confidence, **_ages(now)}
    [(total,)] = cursor.execute(f"SELECT count(*) FROM ({_AGED}) WHERE {where}", parameters).fetchall()
    rows = cursor.execute(
        f"SELECT {_PATTERN} FROM ({_AGED}) WHERE {where} "
        "ORDER BY occurrence_count DESC, confidence DESC, last_observed_at DESC, pattern_id "
        "LIMIT $limit",
        {**parameters, "limit": limit},
    ).fetchall()
    return [_row(_PATTERN_FIELDS, row) for row in rows], total


def _page(
    cursor: Cursor, query: str, counting: str, parameters: list[Any], window: list[int], fields: Sequence[str]
) -> tuple[list[Row], int]:
    """One page and the total; counted apart only when the page lies past the end."""
    rows = cursor.execute(query, [*parameters, *window]).fetchall()
    if rows:
        return [_row(fields, row[:-1]) for row in rows], rows[0][-1]
    [(total,)] = cursor.execute(counting, parameters).fetchall()
    return [], total


def _row(fields: Sequence[str], values: Sequence[Any]) -> Row:
    row = dict(zip(fields, values, strict=True))
    for name, value in row.items():
        if isinstance(value, datetime):
            row[name] = format_time(value.replace(tzinfo=UTC))
        elif name in _JSON:
            row[name] = _JSON[name] if value is None else orjson.loads(value)
    return row
