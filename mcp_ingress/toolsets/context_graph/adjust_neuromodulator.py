"""adjust_neuromodulator: raise or lower one of the modulators."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from processors.context_graph.rules.modulators import ADJUSTED, MODULATORS


async def adjust_neuromodulator(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish the change, and answer what it made of the levels."""
    name, delta = arguments["modulator"], float(arguments["delta"])
    event = writes.request(call, "context.modulator.adjusted", {"modulator": name, "delta": delta})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    known = result or dict.fromkeys(("old_level", "new_level", "delta_applied", "cascades"))
    own = {name: known[name] for name in ("old_level", "new_level", "delta_applied", "cascades")}
    clamped = None if result is None else abs(result["delta_applied"] - delta) > 1e-9
    bounds = {"min": MODULATORS[name].least, "max": MODULATORS[name].most}
    own |= {"modulator": name, "delta_requested": delta, "clamped": clamped, "range": bounds}
    return writes.written(published, own, pending=result is None, problem=problem)


_NUMBER = {"type": ["number", "null"]}

TOOL = Tool(
    name="adjust_neuromodulator",
    toolset="context_graph",
    title="Adjust a modulator",
    description="Adjust a specific neuromodulator level, which goes back to its baseline within minutes. ACh is "
    "read-only. Changes are clamped.",
    kind="write",
    handler=adjust_neuromodulator,
    input_schema={
        "type": "object",
        "properties": {
            "modulator": {
                "type": "string",
                "enum": list(ADJUSTED),
                "description": "Which modulator",
            },
            "delta": {"type": "number", "description": "What to add; negative subtracts"},
        },
        "required": ["modulator", "delta"],
    },
    output_schema=writes.output_schema(
        {
            "modulator": {"type": "string"},
            "old_level": _NUMBER,
            "new_level": _NUMBER,
            "delta_requested": {"type": "number"},
            "delta_applied": _NUMBER,
            "clamped": {"type": ["boolean", "null"]},
            "range": {"type": "object"},
            "cascades": {"type": ["array", "null"], "items": {"type": "object"}},
        }
    ),
)
