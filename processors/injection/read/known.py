"""Reads which records a session is not given: what it said or was given, what is private."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb

from processors.memory.registry import PRIVATE

_SAID = """
SELECT record_id FROM documents
WHERE namespace = $namespace AND record_id IN (SELECT unnest($records::VARCHAR[]))
  AND (session_id = $session OR starts_with(session_id, $session || '/'))
UNION
SELECT record_id FROM turns
WHERE namespace = $namespace AND record_id IN (SELECT unnest($records::VARCHAR[]))
  AND (session_id = $session OR starts_with(session_id, $session || '/'))
UNION
SELECT m.memory_id FROM memories m
JOIN outcomes o ON o.namespace = m.namespace AND o.event_id = m.source_event_id
JOIN tool_calls t ON t.namespace = o.namespace AND t.tool_call_id = o.request_id
WHERE m.namespace = $namespace AND m.memory_id IN (SELECT unnest($records::VARCHAR[]))
  AND (t.session_id = $session OR starts_with(t.session_id, $session || '/'))"""
"""Of the records those that the session wrote: by its own id, as a turn, or by a tool call; also its sub-agents'."""

_GIVEN = """
SELECT unnest(record_ids) FROM injections
WHERE namespace = $namespace AND session_id = $session AND injected_at > coalesce(
    (SELECT max(occurred_at) FROM session_events
     WHERE namespace = $namespace AND session_id = $session AND event_type = 'hook.PreCompact'),
    '-infinity'::TIMESTAMP)"""
"""What was injected since the context was last summarised: what came before may be gone from it."""

_PRIVATE = (
    f"SELECT record_id FROM ({PRIVATE}) WHERE namespace = $namespace "
    "AND record_id IN (SELECT unnest($records::VARCHAR[]))"
)


def read_known(
    cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, record_ids: Sequence[str]
) -> set[str]:
    """Of these records, those that the session wrote or was given."""
    asked = {"namespace": namespace, "session": session_id}
    said = _read(cursor, _SAID, asked | {"records": list(record_ids)})
    return (said | _read(cursor, _GIVEN, asked)).intersection(record_ids)


def read_private(cursor: duckdb.DuckDBPyConnection, namespace: str, record_ids: Sequence[str]) -> set[str]:
    """Of these records, those that are private."""
    return _read(cursor, _PRIVATE, {"namespace": namespace, "records": list(record_ids)})


def _read(cursor: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, object]) -> set[str]:
    return {record_id for (record_id,) in cursor.execute(sql, dict(parameters)).fetchall()}
