"""get_autonomous_status: how the services around the purpose are, and what to do next."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from processors.context_graph.read.services import Operation, read_operations, read_state
from processors.context_graph.rules.services import (
    HEALTH,
    PRIORITIES,
    SEVERITY_SCORES,
    STATUSES,
    TOOLS,
    Runs,
    ServiceState,
    health_of,
    recommendations,
    status_of,
)
from streams.clock import format_time


async def status(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has done, read every part, and say how they are."""
    left = await call.own_records()  # calls that were just answered count
    await call.applied(left, timeout_s=call.services.limits.read_wait_s)
    is_fresh = await call.fresh()
    most = arguments["history_count"] if arguments["include_history"] else 0
    state, history = await call.read(functools.partial(_read, namespace=call.namespace, most=most))
    return {
        "success": True,
        **_shown(state),
        **({"metrics": _metrics(state)} if arguments["include_metrics"] else {}),
        **({"history": [_operation(one) for one in history]} if arguments["include_history"] else {}),
        **({} if is_fresh else {"stale": True}),
    }


def _read(cursor: duckdb.DuckDBPyConnection, namespace: str, most: int) -> tuple[ServiceState, Sequence[Operation]]:
    return read_state(cursor, namespace), read_operations(cursor, namespace, most) if most else []


def _shown(state: ServiceState) -> dict[str, Any]:
    score, health = health_of(state)
    goal = state.goal
    known = {} if goal is None else {"goal_id": goal.goal_id, "description": goal.text}
    drift = {} if goal is None or state.severity is None else {"drift_severity": state.severity}
    return {
        "overall_health": {"score": score, "status": health, "north_star_configured": goal is not None, **drift},
        "services": {service: _service(service, state) for service in TOOLS},
        "recommendations": recommendations(state),
        "north_star": {"configured": goal is not None, **known},
    }


def _service(service: str, state: ServiceState) -> dict[str, Any]:
    runs, worked = state.runs.get(service, Runs()), state.worked_at.get(service)
    times = [at for at in (runs.last_at, worked) if at is not None]
    return {
        "status": status_of(service, state),
        "last_run": _time(max(times, default=None)),
        "last_error": runs.last_error,
    }


def _metrics(state: ServiceState) -> dict[str, Any]:
    every = {service: state.runs.get(service, Runs()) for service in TOOLS}
    return {
        service: {
            "runs": runs.runs,
            "successes": runs.successes,
            "failures": runs.runs - runs.successes,
            "last_duration_ms": runs.last_duration_ms,
        }
        for service, runs in every.items()
    }


def _operation(one: Operation) -> dict[str, Any]:
    return {"ts": _time(one.at), "service": one.service, "operation": one.operation, "outcome": one.outcome}


def _time(at: datetime | None) -> str | None:
    return None if at is None else format_time(at)


_TEXT = {"type": "string"}
_MAYBE = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}
_FLAG = {"type": "boolean"}

TOOL = Tool(
    name="get_autonomous_status",
    toolset="context_graph",
    title="Status of the services",
    description=(
        "Get status of the autonomous North Star system: overall health, its six "
        "services, and prioritised recommendations, each with the tool to call."
    ),
    kind="read",
    handler=status,
    unavailable_code="status_error",
    input_schema={
        "type": "object",
        "properties": {
            "include_metrics": {"type": "boolean", "default": False, "description": "Counts and times of each service"},
            "include_history": {"type": "boolean", "default": False, "description": "What the services did last"},
            "history_count": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 10,
                "description": "Most entries of the history",
            },
        },
    },
    output_schema=writes.output_schema(
        {
            "overall_health": {
                "type": "object",
                "properties": {
                    "score": {"type": "number", "minimum": 0, "maximum": 1},
                    "status": {"type": "string", "enum": list(HEALTH)},
                    "north_star_configured": _FLAG,
                    "drift_severity": {"type": "string", "enum": list(SEVERITY_SCORES)},
                },
            },
            "services": {
                "type": "object",
                "properties": {
                    service: {
                        "type": "object",
                        "properties": {
                            "status": {"type": "string", "enum": list(STATUSES)},
                            "last_run": _MAYBE,
                            "last_error": _MAYBE,
                        },
                    }
                    for service in TOOLS
                },
            },
            "recommendations": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "priority": {"type": "string", "enum": list(PRIORITIES)},
                        "action": {"type": "string", "enum": list(TOOLS.values())},
                        "description": _TEXT,
                    },
                },
            },
            "north_star": {
                "type": "object",
                "properties": {"configured": _FLAG, "goal_id": _TEXT, "description": _TEXT},
            },
            "metrics": {
                "type": "object",
                "additionalProperties": {
                    "type": "object",
                    "properties": {
                        **dict.fromkeys(("runs", "successes", "failures"), _COUNT),
                        "last_duration_ms": {"type": ["number", "null"]},
                    },
                },
            },
            "history": {
                "type": "array",
                "description": "Newest first",
                "items": {
                    "type": "object",
                    "properties": {"ts": _TEXT, "service": _TEXT, "operation": _TEXT, "outcome": _TEXT},
                },
            },
        }
    ),
)
