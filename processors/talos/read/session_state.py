"""Reads from the store what patterns of a session are made of. The patterns stage and `pattern_check` use it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import duckdb

from processors.talos.rules.session_signals import MANY_CALLS, Cluster, SessionState

_CLUSTERS = """
WITH members AS (
    SELECT e.entity_id AS record_id, coalesce(m.into_id, e.entity_id) AS canonical_id
    FROM entities e LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
    WHERE e.namespace = $1 AND e.session_id = $2 AND e.label IN ('Friction', 'Observation', 'Insight'))
SELECT c.label, c.canonical_id, e.text, e.session_id, list(record_id ORDER BY record_id)
FROM members JOIN clusters c ON c.namespace = $1 AND c.canonical_id = members.canonical_id
JOIN entities e ON e.namespace = $1 AND e.entity_id = c.canonical_id
GROUP BY ALL ORDER BY c.canonical_id"""

_FOLLOWED = """
WITH spans AS (
    SELECT to_state, occurred_at, lead(occurred_at) OVER (ORDER BY occurred_at) AS until
    FROM state_changes WHERE namespace = $1 AND session_id = $2)
SELECT DISTINCT to_state, category FROM spans
JOIN (SELECT category, created_at FROM entities
      WHERE namespace = $1 AND session_id = $2 AND label = 'Friction' AND category IS NOT NULL) f
  ON f.created_at >= spans.occurred_at AND (until IS NULL OR f.created_at < until)
WHERE to_state IS NOT NULL ORDER BY ALL"""


def read_state(
    cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, now: datetime | None = None
) -> SessionState | None:
    """The session's state, or None when there is no such session. `now` (UTC) is the end of an open one."""
    key: list[Any] = [namespace, session_id]
    row = cursor.execute(
        "SELECT status, duration_seconds, goal_achieved, started_at FROM talos_sessions "
        "WHERE namespace = ? AND session_id = ?",
        key,
    ).fetchone()
    if row is None:
        return None
    status, duration_s, goal_achieved, started_at = row
    if duration_s is None and now is not None:
        duration_s = max(0, int((now.replace(tzinfo=None) - started_at).total_seconds()))
    busy = cursor.execute(
        "SELECT tool_name FROM tool_calls WHERE namespace = ? AND session_id = ? "
        f"GROUP BY tool_name HAVING count(*) > {MANY_CALLS} ORDER BY tool_name",
        key,
    ).fetchall()
    frictions = cursor.execute(
        "SELECT entity_id, coalesce(category, '') FROM entities "
        "WHERE namespace = ? AND session_id = ? AND label = 'Friction' "
        "ORDER BY created_at, entity_id",
        key,
    ).fetchall()
    clusters = cursor.execute(_CLUSTERS, key).fetchall()
    return SessionState(
        status=status,
        duration_s=duration_s or 0,
        goal_achieved=goal_achieved,
        busy_tools=[name for (name,) in busy if name],
        frictions=frictions,
        clusters=[Cluster(label, identity, text, first, tuple(ids)) for label, identity, text, first, ids in clusters],
        followed=cursor.execute(_FOLLOWED, key).fetchall(),
    )
