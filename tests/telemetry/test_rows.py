"""From a file to the tables: what an import leaves in DuckDB, once and again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from streams.clock import SystemClock
from streams.log.base import Outgoing
from streams.log.sqlite import SqliteLog
from streams.positions import Position
from tests.processors.harness import Store
from thalweg.example import session_path
from thalweg.importing.importer import import_files

SESSION = "7d0c2f4e-5b1a-4c7e-9f36-2a8e41b7c905"


class _IntoStore(SqliteLog):
    """A log that hands each record to the reducers at once."""

    def __init__(self, store: Store) -> None:
        super().__init__("unused")
        self._store = store

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        placed = [self._store.record(record) for record in records]
        self._store.apply(*placed)
        return [record.position for record in placed]


def rows_of(kind: str, *paths: Path, times: int = 1) -> Store:
    store = Store()
    for _ in range(times):
        asyncio.run(import_files(_IntoStore(store), kind, list(paths), namespace="ana", clock=SystemClock()))
    return store


COUNTS = """
    SELECT (SELECT count(*) FROM session_events), (SELECT count(*) FROM telemetry_sessions),
           (SELECT count(*) FROM tool_calls), (SELECT count(*) FROM tool_calls WHERE is_error),
           (SELECT count(*) FROM model_calls), (SELECT sum(output_tokens) FROM model_calls),
           (SELECT sum(cache_read_tokens) FROM model_calls), (SELECT count(*) FROM dead_letters)
"""


def test_the_example_gives_its_sessions_calls_tokens_and_one_dead_letter() -> None:
    assert rows_of("claude-code", session_path()).sql(COUNTS) == [(45, 2, 14, 2, 15, 2552, 345365, 1)]


def test_importing_again_changes_no_count() -> None:
    assert rows_of("claude-code", session_path(), times=2).sql(COUNTS) == [(45, 2, 14, 2, 15, 2552, 345365, 1)]


def test_the_session_rows_say_goal_summary_model_and_parent() -> None:
    store = rows_of("claude-code", session_path())
    main, child = store.sql(
        "SELECT session_id, parent_session_id, project, model, goal, summary FROM telemetry_sessions "
        "ORDER BY session_id"
    )
    assert main[:4] == (SESSION, None, "/home/ana/src/tidewatch", "claude-opus-4-1-20250805")
    assert main[4].startswith("Gauges in Newfoundland")
    assert main[5] == "Fixed the sign of negative UTC offsets with minutes"
    assert child[:2] == (f"{SESSION}/a41c9e7", SESSION)
    assert child[3] == "claude-haiku-4-5-20251001"


def test_a_failed_tool_call_is_one_row_with_its_kind_and_duration() -> None:
    store = rows_of("claude-code", session_path())
    failed = store.sql("SELECT tool_name, error_type, duration_ms FROM tool_calls WHERE is_error ORDER BY started_at")
    assert [row[:2] for row in failed] == [("Edit", "file_not_read"), ("Bash", "nonzero_exit")]
    assert all(row[2] > 0 for row in failed)
