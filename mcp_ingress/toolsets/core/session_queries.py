"""What `sessions` asks of the store: sessions of every kind, their counts, and the course of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import duckdb

from mcp_ingress.toolsets.core.records import one_line
from streams.clock import format_time

Row = dict[str, Any]
Cursor = duckdb.DuckDBPyConnection
MAX_LINE = 160
MAX_SUMMARY = 400
MAX_TOOLS = 12
_ABOUT = ("id", "source", "project", "agent", "goal", "summary", "parent", "started_at", "ended_at")
_SESSION = "session_id, source, project, agent, goal, summary, parent_session_id, started_at, ended_at"
_SAID = """(
    SELECT namespace, session_id, role, text, created_at, "offset" AS place FROM turns
    UNION ALL
    SELECT namespace, session_id, role, content, created_at, sequence FROM vkb_exchanges)"""
"""What people and agents said to each other, in captured sessions and in conversations."""
_COUNTS = f"""
SELECT i.session_id,
       (SELECT count(*) FROM {_SAID} x WHERE x.namespace = $namespace AND x.session_id = i.session_id),
       (SELECT count(*) FROM tool_calls t WHERE t.namespace = $namespace AND t.session_id = i.session_id),
       (SELECT count(*) FROM journal j WHERE j.namespace = $namespace AND j.session_id = i.session_id),
       (SELECT sum(coalesce(m.input_tokens, 0) + coalesce(m.output_tokens, 0)) FROM model_calls m
        WHERE m.namespace = $namespace AND m.session_id = i.session_id)
FROM (SELECT unnest($ids::VARCHAR[]) AS session_id) i"""
_COUNTED = ("turns", "tool_calls", "entries", "tokens")
_FIRST_ASKED = f"""
SELECT session_id, arg_min(text, (created_at, place)) FROM {_SAID}
WHERE namespace = $namespace AND role = 'user' AND session_id IN (SELECT unnest($ids::VARCHAR[])) GROUP BY session_id"""
_LINES = f"""
SELECT created_at, role AS who, text, NULL AS id, place FROM {_SAID}
WHERE namespace = $namespace AND session_id = $session
UNION ALL
SELECT j.created_at, k.kind, j.content, j.entry_id, NULL FROM journal j
JOIN plain_kinds k ON k.namespace = j.namespace AND k.record_id = j.entry_id
WHERE j.namespace = $namespace AND j.session_id = $session
  AND NOT EXISTS (FROM corrections c WHERE c.namespace = j.namespace AND c.record_id = j.entry_id)"""
_TOOLS = """
SELECT tool_name, count(*), count(*) FILTER (is_error) FROM tool_calls
WHERE namespace = $namespace AND session_id = $session AND tool_name IS NOT NULL
GROUP BY tool_name ORDER BY count(*) DESC, tool_name LIMIT $most"""


def list_sessions(
    cursor: Cursor, namespace: str, project: str | None, since: datetime | None, limit: int, offset: int
) -> tuple[list[Row], int]:
    """Sessions that match, the newest first, and how many match in all."""
    where = (
        "namespace = $namespace AND ($project IS NULL OR contains(lower(project), lower($project))) "
        "AND ($since IS NULL OR started_at >= $since)"
    )
    moment = None if since is None else since.astimezone(UTC).replace(tzinfo=None)
    chosen = {"namespace": namespace, "project": project, "since": moment}
    rows = cursor.execute(
        f"SELECT {_SESSION} FROM sessions WHERE {where} ORDER BY started_at DESC, session_id "
        "LIMIT $limit OFFSET $offset",
        {**chosen, "limit": limit, "offset": offset},
    ).fetchall()
    [(total,)] = cursor.execute(f"SELECT count(*) FROM sessions WHERE {where}", chosen).fetchall()
    return _shown(cursor, namespace, rows), total


def read_sessions(cursor: Cursor, namespace: str, ids: Sequence[str]) -> list[Row]:
    """The sessions with these ids, in their order; without those that are not there."""
    rows = cursor.execute(
        f"SELECT {_SESSION} FROM sessions WHERE namespace = ? AND session_id IN (SELECT unnest(?::VARCHAR[]))",
        [namespace, list(ids)],
    ).fetchall()
    return _shown(cursor, namespace, sorted(rows, key=lambda row: ids.index(row[0])))


def read_lines(cursor: Cursor, namespace: str, session_id: str, limit: int, offset: int) -> tuple[list[Row], int]:
    """What was asked, answered and written down in a session, a line each in order; and how many."""
    chosen: dict[str, Any] = {"namespace": namespace, "session": session_id}
    rows = cursor.execute(
        f"SELECT created_at, who, text, id, count(*) OVER () FROM ({_LINES}) ORDER BY created_at, place, id "
        "LIMIT $limit OFFSET $offset",
        {**chosen, "limit": limit, "offset": offset},
    ).fetchall()
    if rows:
        total = rows[0][-1]
    else:
        [(total,)] = cursor.execute(f"SELECT count(*) FROM ({_LINES})", chosen).fetchall()
    lines = [
        {"at": _time(at), "who": who, "text": one_line(text, most=MAX_LINE), **({"id": identity} if identity else {})}
        for at, who, text, identity, _ in rows
    ]
    return lines, total


def read_tools(cursor: Cursor, namespace: str, session_id: str) -> list[Row]:
    """The tools that a session called most, with how often, and how often that failed."""
    rows = cursor.execute(_TOOLS, {"namespace": namespace, "session": session_id, "most": MAX_TOOLS}).fetchall()
    return [{"name": name, "calls": calls, **({"errors": errors} if errors else {})} for name, calls, errors in rows]


def _shown(cursor: Cursor, namespace: str, rows: Sequence[tuple[Any, ...]]) -> list[Row]:
    """The sessions as they are answered: what is known of each, and how much happened in it."""
    chosen = {"namespace": namespace, "ids": [row[0] for row in rows]}
    counts = {row[0]: row[1:] for row in cursor.execute(_COUNTS, chosen).fetchall()}
    asked = dict(cursor.execute(_FIRST_ASKED, chosen).fetchall())
    return [_session(row, counts.get(row[0], ()), asked.get(row[0])) for row in rows]


def _session(row: Sequence[Any], counts: Sequence[int | None], asked: str | None) -> Row:
    about: Mapping[str, Any] = dict(zip(_ABOUT, row, strict=True))
    shown = {name: value for name, value in about.items() if value is not None}
    for name in ("started_at", "ended_at"):
        if name in shown:
            shown[name] = _time(shown[name])
    for name, most in (("goal", MAX_LINE), ("summary", MAX_SUMMARY)):
        if name in shown:
            shown[name] = one_line(shown[name], most=most)
    if "goal" not in shown and asked is not None:
        shown["asked"] = one_line(asked, most=MAX_LINE)
    return shown | {name: count for name, count in zip(_COUNTED, counts, strict=False) if count}


def _time(moment: datetime) -> str:
    return format_time(moment.replace(tzinfo=UTC, microsecond=0))
