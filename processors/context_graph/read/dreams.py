"""What the store knows of a namespace's dreams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from processors.context_graph.rules.dream_ids import merge_id
from processors.context_graph.rules.dream_report import DreamReport, KeptChange, counted
from processors.context_graph.rules.surroundings import SURROUNDINGS
from storage.statements import dicts, execute

if TYPE_CHECKING:
    import duckdb

_CYCLES = "SELECT * FROM context_dream_cycles WHERE namespace = ?"
_ENDED = """SELECT arg_max(dream_id, "offset") FROM context_dream_reports WHERE namespace = ? AND state = 'Awake'"""
_CHANGES = (
    "SELECT source_id, target_id, kind, weight, weight_before, is_removed FROM context_edge_changes "
    "WHERE namespace = ? AND dream_id = ?"
)
_PENDING = "SELECT * FROM context_dream_cycles WHERE state <> 'Awake' ORDER BY started_at, namespace"
_LAST_RUNS = {
    "dream": "SELECT ended_at AS at, namespace, wake_reason FROM context_dream_cycles WHERE ended_at IS NOT NULL",
    "consolidation": "SELECT ended_at AS at, namespace, count(*) AS merged FROM context_ends GROUP BY ALL",
    "drift": "SELECT observed_at AS at, namespace, severity FROM context_drift_observations",
    "correction": "SELECT corrected_at AS at, namespace, strategy FROM context_correction_history",
}
_USED = """
SELECT namespace FROM (
    SELECT namespace, max(last_stored_at) AS used_at FROM context_memories WHERE last_stored_at <= $1 GROUP BY namespace
    UNION ALL SELECT namespace, max(recalled_at) FROM context_recalls WHERE recalled_at <= $1 GROUP BY namespace)
LEFT JOIN (
    SELECT d.namespace, d.started_at AS dreamt_at FROM context_last_dreams l
    JOIN context_dreams d ON d.namespace = l.namespace AND d.dream_id = l.dream_id WHERE d.started_at <= $1
) USING (namespace)
WHERE namespace IN (SELECT namespace FROM context_memories) AND (dreamt_at IS NULL OR used_at > dreamt_at)
GROUP BY namespace ORDER BY namespace"""


@dataclass(frozen=True, slots=True)
class StoredDream:
    """A dream that began. `ended_at` and `wake_reason` are None until it is over."""

    namespace: str
    dream_id: str
    cause: str
    state: str
    started_at: datetime
    aborted_at: datetime | None
    ended_at: datetime | None
    wake_reason: str | None
    is_complete: bool
    report: DreamReport | None


@dataclass(frozen=True, slots=True)
class DreamHistory:
    """The dreams of a namespace: the last that began, the last that is over, and how many were complete.

    The last is that on the log, whatever its time: a clock may have been wrong.
    """

    last: StoredDream | None
    ended: StoredDream | None
    completed_cycles: int
    last_completed_at: datetime | None
    max_wake_latency_ms: float | None

    @property
    def ended_dream_id(self) -> str | None:
        """The dream that began last, if it is over."""
        return None if self.last is None or self.last.ended_at is None else self.last.dream_id


def read_cycle(cursor: duckdb.DuckDBPyConnection, namespace: str, dream_id: str) -> StoredDream | None:
    """One dream; None of an id that is not of one."""
    return _first(cursor, f"{_CYCLES} AND dream_id = ?", [namespace, dream_id])


def read_history(cursor: duckdb.DuckDBPyConnection, namespace: str) -> DreamHistory:
    """What there is of a namespace's dreams."""
    last = _first(
        cursor,
        f"{_CYCLES} AND dream_id = (SELECT dream_id FROM context_last_dreams WHERE namespace = ?)",
        [namespace, namespace],
    )
    ended = _first(cursor, f"{_CYCLES} AND dream_id = ({_ENDED})", [namespace, namespace])
    row = execute(
        cursor,
        'SELECT count(*) FILTER (is_complete), arg_max(reported_at, "offset") FILTER (is_complete), '
        "max((report ->> 'wake_latency_ms')::DOUBLE) FROM context_dream_reports WHERE namespace = ?",
        [namespace],
    ).fetchone()
    assert row is not None
    return DreamHistory(last, ended, *row)


def read_unfinished(cursor: duckdb.DuckDBPyConnection) -> list[StoredDream]:
    """The dreams of all namespaces that began and are not over, the oldest first."""
    return [_cycle(row) for row in dicts(execute(cursor, _PENDING, []))]


def read_last_runs(cursor: duckdb.DuckDBPyConnection) -> dict[str, dict[str, Any] | None]:
    """What of the upkeep of memories ran last in any namespace; None: never.

    When, where, and what came of it.
    """
    runs = {
        name: next(iter(dicts(execute(cursor, f"{query} ORDER BY 1 DESC, 2 LIMIT 1", []))), None)
        for name, query in _LAST_RUNS.items()
    }
    return {name: None if run is None else {**run, "at": run["at"].isoformat() + "Z"} for name, run in runs.items()}


def read_used(cursor: duckdb.DuckDBPyConnection, now: datetime) -> list[str]:
    """The namespaces in which something was stored or recalled since their last dream began.

    A dream that lies in the future counts as none.
    """
    return [namespace for (namespace,) in execute(cursor, _USED, [now]).fetchall()]


def read_counted(cursor: duckdb.DuckDBPyConnection, namespace: str, dream_id: str, report: DreamReport) -> DreamReport:
    """The report of a dream with the counts of what it changed, as the store has it."""
    changes = [KeptChange(*row) for row in execute(cursor, _CHANGES, [namespace, dream_id]).fetchall()]
    row = execute(
        cursor, "SELECT count(*) FROM context_edges WHERE namespace = ? AND NOT is_removed AND weight > 0", [namespace]
    ).fetchone()
    assert row is not None
    report = report.with_nrem(memories_merged=_count_merges(cursor, namespace, [dream_id]))
    report = report.with_rem(surroundings_embedded=_count_surroundings(cursor, namespace, dream_id))
    return counted(report, changes, row[0])


def count_merges(cursor: duckdb.DuckDBPyConnection, namespace: str, since: datetime, until: datetime) -> int:
    """How many groups of memories were merged by dreams that began within this time."""
    rows = execute(
        cursor,
        "SELECT dream_id FROM context_dreams WHERE namespace = ? AND started_at > ? AND started_at <= ?",
        [namespace, since, until],
    ).fetchall()
    return _count_merges(cursor, namespace, [dream_id for (dream_id,) in rows])


def _count_merges(cursor: duckdb.DuckDBPyConnection, namespace: str, dream_ids: Sequence[str]) -> int:
    row = execute(
        cursor,
        "SELECT count(DISTINCT merged_into) FROM context_ends "
        "WHERE namespace = ? AND event_id IN (SELECT unnest(?::VARCHAR[]))",
        [namespace, [merge_id(namespace, one) for one in dream_ids]],
    ).fetchone()
    assert row is not None
    return int(row[0])


def _count_surroundings(cursor: duckdb.DuckDBPyConnection, namespace: str, dream_id: str) -> int:
    row = execute(
        cursor,
        f"SELECT count(*) FROM {SURROUNDINGS} WHERE namespace = ? AND dream_id = ?",
        [namespace, dream_id],
    ).fetchone()
    assert row is not None
    return int(row[0])


def _first(cursor: duckdb.DuckDBPyConnection, query: str, parameters: list[Any]) -> StoredDream | None:
    return next((_cycle(row) for row in dicts(execute(cursor, query, parameters))), None)


def _cycle(row: Mapping[str, Any]) -> StoredDream:
    report = None if row["report"] is None else DreamReport.of(orjson.loads(row["report"]))
    names = StoredDream.__slots__
    return StoredDream(**{**{name: row[name] for name in names}, "report": report})
