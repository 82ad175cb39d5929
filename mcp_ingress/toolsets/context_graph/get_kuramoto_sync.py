"""get_kuramoto_sync: thirteen oscillators, and how far they keep time."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import SESSION, moment, read_state, state_name
from processors.context_graph.read.state import read_coupled
from processors.context_graph.rules.groups import VIEW_COUNT
from processors.context_graph.rules.oscillators import FREQUENCIES_HZ, HYPERSYNC_ABOVE, OMEGA, STATES

THRESHOLDS = {"conscious": STATES[2][0], "fragmented": STATES[1][0], "hypersync": HYPERSYNC_ABOVE}


async def get_kuramoto_sync(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The oscillators of a session as they are now."""
    session_id, now = arguments["session_id"], moment(call)
    coupled, notes = await read_state(call, lambda cursor: read_coupled(cursor, call.namespace, session_id, now))
    r, psi = coupled.synchrony.order
    last = coupled.last_recall_at
    return {
        "success": True,
        **{"r": r, "psi": psi, "phases": list(coupled.synchrony.phases), "synchronization": r},
        "natural_freqs": list(FREQUENCIES_HZ),
        "coupling": coupled.coupling,
        "omega_rad_s": list(OMEGA),
        "state": state_name(coupled, now)[0],
        "elapsed_seconds": 0.0 if last is None else max(0.0, (now - last).total_seconds()),
        "embedding_labels": [f"E{number}" for number in range(1, VIEW_COUNT + 1)],
        "thresholds": THRESHOLDS,
        "session_id": session_id,
        **notes,
    }


_NUMBERS = {"type": "array", "items": {"type": "number"}, "minItems": VIEW_COUNT, "maxItems": VIEW_COUNT}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}

TOOL = Tool(
    name="get_kuramoto_sync",
    toolset="context_graph",
    title="Agreement of the views",
    description="Get Kuramoto synchronization state: order parameter `r`, phases, natural frequencies, coupling. "
    "Where `r` is low, the views disagreed on the last results: doubt them.",
    kind="read",
    handler=get_kuramoto_sync,
    input_schema={"type": "object", "properties": {"session_id": SESSION}},
    output_schema=writes.output_schema(
        {
            "r": {**_UNIT, "description": "Order parameter: 1 = all views agree"},
            "psi": {"type": "number", "description": "Mean phase in radians"},
            "phases": _NUMBERS,
            "natural_freqs": {**_NUMBERS, "description": "Hz"},
            "coupling": {"type": "number", "minimum": 0, "maximum": 10},
            "omega_rad_s": _NUMBERS,
            "synchronization": _UNIT,
            "state": {"type": "string", "enum": [name for _, name, _ in STATES] + ["CONSCIOUS", "HYPERSYNC"]},
            "elapsed_seconds": {"type": "number", "description": "Since the last search"},
            "embedding_labels": {"type": "array", "items": {"type": "string"}},
            "thresholds": {"type": "object"},
            "session_id": {"type": "string"},
        }
    ),
)
