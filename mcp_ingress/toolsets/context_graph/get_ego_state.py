"""get_ego_state: whether a session still is about what its purpose is."""

from __future__ import annotations

from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import SESSION, ego_of, read_state
from processors.context_graph.rules.ego import DEGRADED, HEALTHY, REFLECT_BELOW, SELF_NODE, STATUSES, WARNING, Ego
from processors.context_graph.rules.groups import VIEW_COUNT

THRESHOLDS = {"healthy": HEALTHY, "warning": WARNING, "degraded": DEGRADED, "critical": 0.0}
REFLECT = (
    "What was recalled last is not what this session stores: look again at the purpose, or search for what is stored."
)


async def get_ego_state(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The purpose of a session, its identity, and how what it recalls fits to it."""

    def query(cursor: duckdb.DuckDBPyConnection) -> Ego:
        return ego_of(cursor, call, arguments["session_id"])

    ego, notes = await read_state(call, query)
    reflects = 0.0 < ego.coherence_with_actions < REFLECT_BELOW
    return {
        "success": True,
        "purpose_vector": list(ego.purpose),
        "identity_status": ego.status,
        "coherence_with_actions": ego.coherence_with_actions,
        "trajectory_length": ego.trajectory_length,
        "identity_coherence": ego.identity_coherence,
        "provisional": ego.is_provisional,
        "thresholds": THRESHOLDS,
        "self_node": SELF_NODE,
        "recommendation": REFLECT if reflects else None,
        "session_id": arguments["session_id"],
        **notes,
    }


TOOL = Tool(
    name="get_ego_state",
    toolset="context_graph",
    title="Identity of a session",
    description="Get Self-Ego Node state: the purpose vector (13D) of the last memories, whether they still are "
    "about the North Star (Healthy to Critical), and whether what was recalled fits to them.",
    kind="read",
    handler=get_ego_state,
    input_schema={"type": "object", "properties": {"session_id": SESSION}},
    output_schema=writes.output_schema(
        {
            "purpose_vector": {"type": "array", "items": {"type": "number"}, "maxItems": VIEW_COUNT},
            "identity_status": {"type": "string", "enum": list(STATUSES)},
            "coherence_with_actions": {"type": "number", "description": "-1 to 1; 0 before anything was recalled"},
            "trajectory_length": {"type": "integer", "description": "Memories of the session, at most 1,000"},
            "identity_coherence": {"type": "number", "description": "1 = as the goal's memories are"},
            "provisional": {"type": "boolean", "description": "No North Star is there to compare with"},
            "thresholds": {"type": "object"},
            "self_node": {"type": "string"},
            "recommendation": {"type": ["string", "null"]},
            "session_id": {"type": "string"},
        }
    ),
)
