"""trigger_dream: asks for a dream, and waits some seconds for its report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.activity import Activity
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.dream_answers import REPORT, report_of
from mcp_ingress.toolsets.context_graph.dreams import STATES, Dreams
from processors.context_graph.read.dreams import read_cycle, read_history

WAIT_S = 5.0
"""How long the call waits for the dream's end."""
_UNDECIDED = "not decided yet: get_dream_status tells later"


async def trigger(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish the request with what is known of the moment, and answer the report as far as it is."""
    activity = call.part(Activity).share(call.namespace)
    event = writes.request(call, "context.dream.requested", {"force": bool(arguments["force"]), "cause": "asked"})
    history = await call.read(lambda cursor: read_history(cursor, call.namespace))
    event = writes.with_findings(event, {"activity": activity, "ended_dream_id": history.ended_dream_id})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    own = {"activity_level": round(activity, 4), **await _came_of(call, result)}
    return writes.written(published, own, pending=result is None, problem=problem)


async def _came_of(call: Call, result: Mapping[str, Any] | None) -> dict[str, Any]:
    """What became of the request within the time that the call waits."""
    dreams, namespace = call.part(Dreams), call.namespace
    if result is None or not result["triggered"]:
        told = (
            {"reason": _UNDECIDED} if result is None else {"reason": result["reason"], "dream_id": result["dream_id"]}
        )
        return {"triggered": False, "report": None, "completed": False, "dream_id": None, **told} | {
            "current_state": dreams.state(namespace)
        }
    identity: str = result["dream_id"]
    dream = await dreams.finished(namespace, identity, writes.time_left(call, WAIT_S))
    cycle = await call.read(lambda cursor: read_cycle(cursor, namespace, identity))
    return {
        "triggered": True,
        "reason": result["reason"],
        "dream_id": identity,
        "report": report_of(cycle, dream),
        "completed": cycle is not None and cycle.is_complete,
        "current_state": dreams.state(namespace),
    }


TOOL = Tool(
    name="trigger_dream",
    toolset="context_graph",
    title="Dream",
    description="Manually trigger a dream consolidation cycle: NREM (at most 3 min) reweighs the edges of the "
    "memories used last; REM (at most 2 min) joins distant memories, makes shortcuts and merges what says the same. "
    "System must be idle (activity < 0.15) unless `force`. Waits at most 5 s; then the `report` is partial and "
    "`get_dream_status` has the rest. Any call that stores or recalls wakes it.",
    kind="write",
    handler=trigger,
    timeout_s=10.0,
    input_schema={
        "type": "object",
        "properties": {
            "force": {
                "type": "boolean",
                "default": False,
                "description": "Dream in spite of activity (not recommended)",
            }
        },
    },
    output_schema=writes.output_schema(
        {
            "triggered": {"type": "boolean"},
            "reason": {"type": "string", "description": "`started`, `already_dreaming`, or why nobody dreams now"},
            "current_state": {"type": "string", "enum": list(STATES)},
            "activity_level": {
                "type": "number",
                "description": "Share of the last minute's seconds with a call that stores or recalls",
            },
            "report": REPORT,
            "dream_id": {"type": ["string", "null"], "description": "Of the dream that began, or that runs already"},
            "completed": {"type": "boolean", "description": "Whether the cycle came to its own end"},
        }
    ),
)
