"""trigger_recalibration: learn from what was judged, at one of four levels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.calibration_fields import DOMAIN, METRICS
from processors.context_graph.rules.recalibration import LEVELS

_DECIDED = ("action", "description", "changes")


async def trigger_recalibration(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Ask for the level, and answer what the reducer changed."""
    level = arguments["level"]
    event = writes.request(call, "context.threshold.recalibrated", {"level": level, "domain": arguments["domain"]})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    decided: Mapping[str, Any] = {} if result is None else result
    about = {"level": level, "level_name": LEVELS[level], **{name: decided.get(name) for name in _DECIDED}}
    own = {"recalibration_id": event.id, "domain": arguments["domain"], "recalibration": about}
    own |= {name: decided.get(name) for name in ("metrics_before", "metrics_after")}
    answer = writes.written(published, own, pending=result is None, problem=problem)
    reason = decided.get("reason")
    return answer if reason is None else answer | {"success": False, "reason": reason}


TOOL = Tool(
    name="trigger_recalibration",
    toolset="context_graph",
    title="Recalibrate",
    description=(
        "Manually trigger recalibration at a specific ATC level, from what "
        "update_synergy_matrix judged (at least ten): 1 EWMA drift, 3 Thompson sampling "
        "and 4 Bayesian meta-optimization move thresholds, which are shown only; 2 "
        "corrects the `relevance` of searches, hourly by itself."
    ),
    kind="write",
    handler=trigger_recalibration,
    memory_operation="update_memory",
    input_schema={
        "type": "object",
        "properties": {
            "level": {
                "type": "integer",
                "minimum": min(LEVELS),
                "maximum": max(LEVELS),
                "description": "Which level",
            },
            "domain": DOMAIN,
        },
        "required": ["level"],
    },
    output_schema=writes.output_schema(
        {
            "recalibration_id": {"type": "string"},
            "domain": {"type": "string"},
            "recalibration": {"type": "object", "description": "level, level_name, action, description, changes"},
            "metrics_before": {**METRICS, "type": ["object", "null"]},
            "metrics_after": {**METRICS, "type": ["object", "null"]},
            "reason": {"type": "string"},
        }
    ),
)
