"""get_workspace_status: which memories compete, and which was broadcast last."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import SESSION, moment, read_state
from processors.context_graph.read.state import read_workspace
from processors.context_graph.rules.workspace import BROADCAST_MS, THRESHOLD, Contender, competing
from streams.clock import format_time


async def get_workspace_status(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The workspace of a session as it is now."""
    session_id, now = arguments["session_id"], moment(call)
    found, notes = await read_state(call, lambda cursor: read_workspace(cursor, call.namespace, session_id))
    candidates, last = competing(found.candidates, now), found.broadcast_at
    return {
        "success": True,
        "active_memory": found.memory_id,
        "is_broadcasting": found.is_broadcasting(now),
        "coherence_threshold": THRESHOLD,
        "conflict_memories": [each.memory_id for each in candidates] if len(candidates) > 1 else [],
        "has_conflict": len(candidates) > 1,
        "candidates": [_shown(each) for each in candidates],
        "broadcast_duration_ms": BROADCAST_MS,
        "last_broadcast_at": None if last is None else format_time(last.replace(tzinfo=UTC)),
        "wta": {"winner": found.memory_id, "winner_score": found.score, "history_length": found.broadcasts},
        "session_id": session_id,
        **notes,
    }


def _shown(candidate: Contender) -> dict[str, Any]:
    numbers = {"r": candidate.r, "importance": candidate.importance, "alignment": candidate.alignment}
    return {"memory_id": candidate.memory_id, "score": candidate.score, **numbers}


_ID = {"type": ["string", "null"]}

TOOL = Tool(
    name="get_workspace_status",
    toolset="context_graph",
    title="Workspace",
    description="Get Global Workspace status: the memory that was broadcast last, those that compete (each for five "
    "seconds), and the threshold of `r` above which one is broadcast without force.",
    kind="read",
    handler=get_workspace_status,
    input_schema={"type": "object", "properties": {"session_id": SESSION}},
    output_schema=writes.output_schema(
        {
            "active_memory": _ID,
            "is_broadcasting": {"type": "boolean", "description": f"For {BROADCAST_MS} ms after a broadcast"},
            "coherence_threshold": {"type": "number"},
            "conflict_memories": {"type": "array", "items": {"type": "string"}},
            "has_conflict": {"type": "boolean"},
            "candidates": {"type": "array", "items": {"type": "object"}},
            "broadcast_duration_ms": {"type": "integer"},
            "last_broadcast_at": {"type": ["string", "null"]},
            "wta": {"type": "object", "properties": {"winner": _ID, "winner_score": {"type": ["number", "null"]}}},
            "session_id": {"type": "string"},
        }
    ),
)
