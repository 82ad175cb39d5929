"""adjust_coupling: how strongly the agreement of the views counts."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import moment
from processors.context_graph.read.state import read_coupled
from processors.context_graph.rules.oscillators import LEAST_COUPLING, MOST_COUPLING, clamped, settled
from processors.context_graph.rules.workspace import WHOLE


async def adjust_coupling(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish the new strength, and foresee the order that it comes to."""
    asked, now = float(arguments["new_K"]), moment(call)
    event = writes.request(call, "context.coupling.adjusted", {"coupling": asked})
    coupled = await call.read(lambda cursor: read_coupled(cursor, call.namespace, WHOLE, now))
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    own = {
        "old_K": None if result is None else result["old_K"],
        "new_K": clamped(asked),
        "K_clamped": clamped(asked) != asked,
        "predicted_r": settled(clamped(asked), coupled.agreement).mean_r,
        "current_r": coupled.synchrony.order[0],
    }
    return writes.written(published, own, pending=result is None, problem=problem)


_UNIT = {"type": "number", "minimum": 0, "maximum": 1}

TOOL = Tool(
    name="adjust_coupling",
    toolset="context_graph",
    title="Couple the views",
    description="Adjust Kuramoto oscillator network coupling strength K: with a higher K the views keep time at less "
    f"agreement, so that `r` is higher. K is clamped to [{LEAST_COUPLING:g}, {MOST_COUPLING:g}].",
    kind="write",
    handler=adjust_coupling,
    input_schema={
        "type": "object",
        "properties": {"new_K": {"type": "number", "description": "New coupling strength (0-10)"}},
        "required": ["new_K"],
    },
    output_schema=writes.output_schema(
        {
            "old_K": {"type": ["number", "null"]},
            "new_K": {"type": "number"},
            "K_clamped": {"type": "boolean"},
            "predicted_r": {**_UNIT, "description": "What `r` comes to if the views go on agreeing as they do"},
            "current_r": _UNIT,
        }
    ),
)
