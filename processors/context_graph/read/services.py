"""What the store tells of the six services: goals, calls of tools, and what they did by themselves."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import duckdb

from processors.context_graph.read.goals import read_north_star
from processors.context_graph.rules.services import TOOLS, Runs, ServiceState
from storage.statements import execute, marks
from streams.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping

Part = TypeVar("Part")
_SERVICES = {tool: service for service, tool in TOOLS.items()}
_MEMORIES = """
SELECT (SELECT count(*) FROM context_memories WHERE namespace = $1)
     - (SELECT count(*) FROM context_ends WHERE namespace = $1),
       (SELECT count(*) FROM context_goals WHERE namespace = $1 AND level <> 'NorthStar'),
       (SELECT count(*) FROM context_dream_cycles WHERE namespace = $1 AND state <> 'Awake')"""
_CALLS = f"""
SELECT tool_name, count(*), count(*) FILTER (outcome = 'ok'), max(started_at),
       arg_max(outcome, (started_at, "offset")),
       arg_max(error_code, (started_at, "offset")) FILTER (outcome <> 'ok'),
       arg_max(duration_ms, (started_at, "offset"))
FROM invocations WHERE namespace = ? AND tool_name IN ({marks(_SERVICES)}) GROUP BY tool_name"""
_WORKED = """
SELECT 'bootstrap_service', max(updated_at) FROM context_goals WHERE namespace = $1 AND level = 'NorthStar'
UNION ALL SELECT 'subgoal_discovery', max(updated_at) FROM context_goals WHERE namespace = $1 AND level <> 'NorthStar'
UNION ALL SELECT 'consolidation_service', max(ended_at) FROM context_ends WHERE namespace = $1
UNION ALL SELECT 'drift_detector', max(observed_at) FROM context_drift_observations WHERE namespace = $1
UNION ALL SELECT 'drift_corrector', max(corrected_at) FROM context_correction_history WHERE namespace = $1"""
_SEVERITY = """
SELECT severity FROM context_drift_observations WHERE namespace = ? AND goal_id = ?
ORDER BY observed_at DESC, event_id LIMIT 1"""
_HISTORY = f"""
SELECT started_at AS ts, tool_name AS tool, tool_name AS operation, outcome, "offset" FROM invocations
WHERE namespace = $namespace AND tool_name IN (SELECT unnest($tools::VARCHAR[]))
UNION ALL
SELECT observed_at, '{TOOLS["drift_detector"]}', 'observation', severity, "offset"
FROM context_drift_observations WHERE namespace = $namespace
UNION ALL
SELECT corrected_at, '{TOOLS["drift_corrector"]}', 'automatic correction', strategy, "offset"
FROM context_correction_history WHERE namespace = $namespace AND is_automatic
ORDER BY ts DESC, "offset" DESC, tool LIMIT $most"""


class Operation(NamedTuple):
    """Something that a service did. `operation`: the tool that was called, or what it did by itself."""

    at: datetime
    service: str
    operation: str
    outcome: str


def read_state(cursor: duckdb.DuckDBPyConnection, namespace: str) -> ServiceState:
    """What the services are now. Raises Unavailable, which names the part that cannot be read."""
    goal = _part("goals", lambda: read_north_star(cursor, namespace))
    memories, themes, dreams = _part("memories", lambda: execute(cursor, _MEMORIES, [namespace]).fetchall())[0]
    runs = _part("calls", lambda: _runs(cursor, namespace))
    worked = _part("services", lambda: _worked(cursor, namespace))
    for service, each in runs.items():
        if each.successes and each.last_outcome == "ok" and each.last_at is not None:
            worked[service] = max(worked.get(service, each.last_at), each.last_at)
    severity = None
    if goal is not None:
        row = _part("drift", lambda: execute(cursor, _SEVERITY, [namespace, goal.goal_id]).fetchone())
        severity = None if row is None else row[0]
    return ServiceState(goal, memories, themes, severity, runs, worked, dreams)


def read_operations(cursor: duckdb.DuckDBPyConnection, namespace: str, most: int) -> list[Operation]:
    """What the services did last, newest first. Raises Unavailable."""
    parameters = {"namespace": namespace, "tools": list(_SERVICES), "most": most}
    rows = _part("history", lambda: cursor.execute(_HISTORY, parameters).fetchall())
    return [
        Operation(at.replace(tzinfo=UTC), _SERVICES[tool], operation, outcome)
        for at, tool, operation, outcome, _ in rows
    ]


def _part(name: str, read: Callable[[], Part]) -> Part:
    try:
        return read()
    except duckdb.Error as error:
        raise Unavailable(f"The {name} of the status cannot be read ({type(error).__name__}).") from error


def _runs(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Mapping[str, Runs]:
    found: dict[str, Runs] = {}
    for tool, runs, successes, at, outcome, failure, took_ms in _rows(cursor, _CALLS, [namespace, *_SERVICES]):
        found[_SERVICES[tool]] = Runs(runs, successes, at.replace(tzinfo=UTC), outcome, failure, took_ms)
    return found


def _worked(cursor: duckdb.DuckDBPyConnection, namespace: str) -> dict[str, datetime]:
    rows = _rows(cursor, _WORKED, [namespace])
    return {service: at.replace(tzinfo=UTC) for service, at in rows if at is not None}


def _rows(cursor: duckdb.DuckDBPyConnection, query: str, parameters: list[Any]) -> list[tuple[Any, ...]]:
    return execute(cursor, query, parameters).fetchall()
