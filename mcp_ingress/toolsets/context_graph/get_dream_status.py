"""get_dream_status: whether the memory dreams, when it did last, and when it will by itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mcp_ingress import writes
from mcp_ingress.activity import Activity
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.abort_dream import MANDATE_MS
from mcp_ingress.toolsets.context_graph.dream_answers import REPORT, report_of
from mcp_ingress.toolsets.context_graph.dreams import STATES, Dreams
from processors.context_graph.read.dreams import DreamHistory, StoredDream, read_history
from processors.context_graph.read.edges import count_former
from processors.context_graph.rules.idleness import IDLE_S, QUIET_BELOW, cooldown_left_s, waits_for

_NUMBER = {"type": ["number", "null"]}
GPU = {"gpu_usage": 0.0, "gpu_available": False}
"""Nothing here uses a GPU."""


async def status(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The state now, the last cycles, and what a dream by itself waits for."""
    is_fresh = await call.fresh()
    history = await call.read(lambda cursor: read_history(cursor, call.namespace))
    activity, dream = call.part(Activity).share(call.namespace), call.part(Dreams).running.get(call.namespace)
    since_s = None if history.ended is None else _since(call, history.ended)
    model = call.services.indexes.model
    return {
        "success": True,
        "state": call.part(Dreams).state(call.namespace),
        **GPU,
        "activity_level": round(activity, 4),
        "is_dreaming": dream is not None,
        "current_report": None if dream is None else dream.report.to_json(),
        **_past(history, since_s),
        "scheduler": _scheduler(call, history, activity, since_s),
        "edges_of_former_space": 0
        if model is None
        else await call.read(lambda cursor: count_former(cursor, call.namespace, model.space)),
        **({} if is_fresh else {"stale": True}),
    }


def _past(history: DreamHistory, since_s: float | None) -> dict[str, Any]:
    latency = history.max_wake_latency_ms
    is_ok = latency is None or latency <= MANDATE_MS
    return {
        "time_since_last_dream_secs": None if since_s is None else max(0.0, since_s),
        "completed_cycles": history.completed_cycles,
        "last_dream_completed": _time(history.last_completed_at),
        "last_report": report_of(history.ended),
        "constitution_compliance": {"wake_latency_ok": is_ok, "gpu_ok": True, "max_wake_latency_ms": latency},
    }


def _scheduler(call: Call, history: DreamHistory, activity: float, since_s: float | None) -> dict[str, Any]:
    idle_s = call.part(Activity).idle_s(call.namespace, QUIET_BELOW)
    waits = waits_for(activity, idle_s, since_s)
    if history.last is not None and history.last.ended_at is None:
        waits = "dream"
    return {
        "average_activity": round(activity, 4),
        "activity_threshold": QUIET_BELOW,
        "idle_duration_trigger_secs": int(IDLE_S),
        "cooldown_remaining_secs": round(cooldown_left_s(since_s), 3),
        "current_idle_duration_secs": round(idle_s, 3),
        "trigger_decision": "due" if waits is None else f"waits for {_WAITS[waits]}",
    }


_WAITS = {
    "activity": "less activity",
    "idleness": "more idle time",
    "cooldown": "the time since the last dream",
    "dream": "the end of the dream that runs",
}


def _since(call: Call, ended: StoredDream) -> float:
    assert ended.ended_at is not None
    return round((call.clock.now().replace(tzinfo=None) - ended.ended_at).total_seconds(), 3)


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat() + "Z"


TOOL = Tool(
    name="get_dream_status",
    toolset="context_graph",
    title="Dream status",
    description="Get current dream system status: state (Awake/NREM/REM/Waking), GPU usage, activity level, and time "
    "since the last dream cycle, with its report. `scheduler` says when it dreams by itself. It wakes nothing.",
    kind="read",
    handler=status,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {
            "state": {"type": "string", "enum": list(STATES)},
            "gpu_usage": {"type": "number", "description": "0: nothing here uses one"},
            "gpu_available": {"type": "boolean"},
            "activity_level": {"type": "number"},
            "time_since_last_dream_secs": _NUMBER,
            "is_dreaming": {"type": "boolean"},
            "completed_cycles": {"type": "integer", "minimum": 0},
            "last_dream_completed": {"type": ["string", "null"]},
            "last_report": REPORT,
            "current_report": {**REPORT, "description": "Of the dream that runs: what it says of itself until now"},
            "scheduler": {
                "type": "object",
                "properties": {
                    "average_activity": {"type": "number"},
                    "activity_threshold": {"type": "number"},
                    "idle_duration_trigger_secs": {"type": "integer"},
                    "cooldown_remaining_secs": {"type": "number"},
                    "current_idle_duration_secs": {"type": "number"},
                    "trigger_decision": {"type": "string"},
                },
            },
            "edges_of_former_space": {
                "type": "integer",
                "minimum": 0,
                "description": "Edges that another model measured; a dream measures them anew",
            },
            "constitution_compliance": {
                "type": "object",
                "properties": {
                    "wake_latency_ok": {"type": "boolean"},
                    "gpu_ok": {"type": "boolean"},
                    "max_wake_latency_ms": _NUMBER,
                },
            },
        }
    ),
)
