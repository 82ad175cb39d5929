"""get_consciousness_state: the level C and what it is made of."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

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
from processors.context_graph.rules.workspace import THRESHOLD, competing

_FACTORS = ("integration", "reflection", "differentiation")


class _State(NamedTuple):
    """What is read of a session: its oscillators, meta score, workspace and ego."""

    coupled: Coupled
    meta: float
    workspace: Workspace
    ego: Ego


async def get_consciousness_state(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """C of a session as it is now, its factors, workspace and identity."""
    session_id, now = arguments["session_id"], moment(call)
    read, notes = await read_state(call, lambda cursor: _read(cursor, call, session_id, now))
    r, psi = read.coupled.synchrony.order
    found = Consciousness.of(r, read.meta, read.ego.purpose)
    state, code = state_name(read.coupled, now)
    last = read.coupled.last_recall_at
    return {
        "success": True,
        **{"r": r, "C": found.level, "meta_score": read.meta, "psi": psi, "state": state, "gwt_state": code},
        **_factors(found),
        "workspace": _workspace(read.workspace, now),
        "identity": _identity(read.ego),
        "time_in_state_ms": 0 if last is None else max(0, (now - last) // timedelta(milliseconds=1)),
        "session_id": session_id,
        **notes,
    }


def _read(cursor: duckdb.DuckDBPyConnection, call: Call, session_id: str, now: datetime) -> _State:
    return _State(
        read_coupled(cursor, call.namespace, session_id, now),
        meta_score(read_learning_scores(cursor, call.namespace, session_id)),
        read_workspace(cursor, call.namespace, session_id),
        ego_of(cursor, call, session_id),
    )


def _factors(found: Consciousness) -> dict[str, Any]:
    factors = {name: getattr(found, name) for name in _FACTORS}
    sufficient = {f"{name}_sufficient": value >= SUFFICIENT for name, value in factors.items()}
    return {**factors, "component_analysis": {**sufficient, "limiting_factor": found.limiting_factor}}


def _identity(ego: Ego) -> dict[str, Any]:
    return {
        "coherence": ego.identity_coherence,
        "status": ego.status,
        "trajectory_length": ego.trajectory_length,
        "purpose_vector": list(ego.purpose),
    }


def _workspace(workspace: Workspace, now: datetime) -> dict[str, Any]:
    return {
        "active_memory": workspace.memory_id,
        "is_broadcasting": workspace.is_broadcasting(now),
        "has_conflict": len(competing(workspace.candidates, now)) > 1,
        "coherence_threshold": THRESHOLD,
    }


_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_OBJECT = {"type": "object"}

TOOL = Tool(
    name="get_consciousness_state",
    toolset="context_graph",
    title="Consciousness level",
    description="Get current consciousness state: `C`, shown only, of `r` (how far the views agree on what was "
    "recalled), foreseen learning and spread of purpose. `r` below 0.5 says to doubt the last results, `identity` "
    "whether the session is about its goal.",
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
