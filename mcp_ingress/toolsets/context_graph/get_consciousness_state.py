"""get_consciousness_state: the level C and what it is made of."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import SESSION, ego_of, moment, read_state, state_name
from processors.context_graph.read.state import (
    Coupled,
    Workspace,
    read_coupled,
    read_learning_scores,
    read_workspace,
)
from processors.context_graph.rules.consciousness import SUFFICIENT, Consciousness, meta_score
from processors.context_graph.rules.ego import Ego
from processors.context_graph.rules.workspace import BROADCAST_MS, THRESHOLD, competing

_FACTORS = ("integration", "reflection", "differentiation")


async def get_consciousness_state(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """C of a session as it is now, its factors, workspace and identity."""
    session_id, now = arguments["session_id"], moment(call)

    def query(cursor: duckdb.DuckDBPyConnection) -> tuple[Coupled, float, Workspace, Ego]:
        coupled = read_coupled(cursor, call.namespace, session_id, now)
        meta = meta_score(read_learning_scores(cursor, call.namespace, session_id))
        return coupled, meta, read_workspace(cursor, call.namespace, session_id), ego_of(cursor, call, session_id)

    (coupled, meta, workspace, ego), notes = await read_state(call, query)
    r, psi = coupled.synchrony.order
    found = Consciousness.of(r, meta, ego.purpose)
    state, code = state_name(coupled, now)
    last = coupled.last_recall_at
    factors = {name: getattr(found, name) for name in _FACTORS}
    return {
        "success": True,
        **{"r": r, "C": found.level, "meta_score": meta, "psi": psi, "state": state, "gwt_state": code, **factors},
        "workspace": _workspace(workspace, now),
        "identity": {
            "coherence": ego.identity_coherence,
            "status": ego.status,
            "trajectory_length": ego.trajectory_length,
            "purpose_vector": list(ego.purpose),
        },
        "time_in_state_ms": 0 if last is None else max(0, (now - last) // timedelta(milliseconds=1)),
        "component_analysis": {
            **{f"{name}_sufficient": value >= SUFFICIENT for name, value in factors.items()},
            "limiting_factor": found.limiting_factor,
        },
        "session_id": session_id,
        **notes,
    }


def _workspace(workspace: Workspace, now: datetime) -> dict[str, Any]:
    last = workspace.broadcast_at
    return {
        "active_memory": workspace.memory_id,
        "is_broadcasting": last is not None and now - last < timedelta(milliseconds=BROADCAST_MS),
        "has_conflict": len(competing(workspace.candidates, now)) > 1,
        "coherence_threshold": THRESHOLD,
    }


_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_OBJECT = {"type": "object"}

TOOL = Tool(
    name="get_consciousness_state",
    toolset="context_graph",
    title="Consciousness level",
    description="Get current consciousness state: `C` = how far the views agree on what was recalled (`r`), times how "
    "well learning was foreseen, times how many views the purpose is spread over. `C` itself is shown only; `r` below "
    "0.5 says that the last results deserve doubt, `identity` whether the session is still about its goal.",
    kind="read",
    handler=get_consciousness_state,
    input_schema={"type": "object", "properties": {"session_id": SESSION}},
    output_schema=writes.output_schema(
        {
            **dict.fromkeys(("r", "C", "meta_score", *_FACTORS), _UNIT),
            "psi": {"type": "number", "description": "Radians"},
            **dict.fromkeys(("workspace", "identity", "component_analysis"), _OBJECT),
            "state": {"type": "string"},
            "gwt_state": {"type": "string", "description": "The state in three letters"},
            "time_in_state_ms": {"type": "integer", "description": "Since the last search, which made the state"},
            "session_id": {"type": "string"},
        }
    ),
)
