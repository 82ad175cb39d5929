"""Reads in which sessions a record was given without asking."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import duckdb

from streams.clock import format_time

MOST = 10

_INJECTIONS = f"""
SELECT session_id, hook, injected_at, scores[list_position(record_ids, $record)] FROM injections
WHERE namespace = $namespace AND list_contains(record_ids, $record)
ORDER BY injected_at DESC, event_id DESC LIMIT {MOST}"""


def read_injections(cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> list[dict[str, Any]]:
    """The newest ten: `{"session_id", "hook", "injected_at", "score"}`.

    The score is None where a brief named the record.
    """
    rows = cursor.execute(_INJECTIONS, {"namespace": namespace, "record": record_id}).fetchall()
    return [
        {"session_id": session_id, "hook": hook, "injected_at": format_time(moment.replace(tzinfo=UTC)), "score": score}
        for session_id, hook, moment, score in rows
    ]
