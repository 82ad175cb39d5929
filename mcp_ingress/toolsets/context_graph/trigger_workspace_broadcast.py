"""trigger_workspace_broadcast: let a memory compete; what wins is context of the searches that follow."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.session_state import moment
from processors.context_graph.read.ends import followed
from processors.context_graph.read.state import read_coupled
from processors.context_graph.rules.workspace import ALIGNMENT, BROADCAST_MS, IMPORTANCE, THRESHOLD, WHOLE
from storage.context_graph.memory_rows import MemoryRows
from streams.errors import Refused

_DECIDED = ("was_selected", "score", "losers", "reason")


async def broadcast(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Measure how far the views agree, publish, and answer whether the memory won."""
    asked = writes.checked_text(arguments, "memory_id")
    session_id = call.session_id or call.connection.open_session_id or WHOLE
    now = moment(call)
    await call.fresh()
    memory_id, r = await call.read(lambda cursor: _measured(cursor, call, asked, session_id))
    about = {name: arguments[name] for name in ("importance", "alignment", "force")}
    event = writes.request(call, "context.workspace.broadcast", {"memory_id": memory_id, **about})
    event = writes.with_findings(event, {"r": r, "threshold": THRESHOLD, "session_id": session_id})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    own: dict[str, Any] = {"memory_id": memory_id, "new_r": r}
    own |= dict.fromkeys(_DECIDED) if result is None else {name: result[name] for name in _DECIDED}
    if result is not None:
        ended = moment(call) - now > timedelta(milliseconds=BROADCAST_MS)
        own |= {"is_broadcasting": result["was_selected"] and not ended, "dopamine_triggered": result["dopamine"] > 0}
    if memory_id != asked:
        own["followed_from"] = asked
    return writes.written(published, own, pending=result is None, problem=problem)


def _measured(cursor: duckdb.DuckDBPyConnection, call: Call, asked: str, session_id: str) -> tuple[str, float]:
    """The living memory of this id, and the order parameter. Raises Refused."""
    memory_id = followed(cursor, call.namespace, asked)
    if memory_id not in call.part(MemoryRows).read(cursor, call.namespace, [memory_id]):
        message = f"No memory has the id {asked[:80]!r}: `memory_id` takes the `fingerprintId` of a result."
        raise Refused(message, reason="not_found", field="memory_id")
    return memory_id, read_coupled(cursor, call.namespace, session_id, moment(call)).synchrony.order[0]


_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG = {"type": ["boolean", "null"]}

TOOL = Tool(
    name="trigger_workspace_broadcast",
    toolset="context_graph",
    title="Broadcast a memory",
    description="Trigger winner-take-all workspace broadcast with a specific memory: it competes, and is broadcast "
    f"where `r` reaches {THRESHOLD:g} and no other has a higher score, or with `force`. For five minutes searches "
    "then rank higher what stands beside it.",
    kind="write",
    handler=broadcast,
    input_schema={
        "type": "object",
        "properties": {
            "memory_id": {"type": "string", "description": "UUID of memory to broadcast"},
            "importance": {**_UNIT, "default": IMPORTANCE, "description": "Importance score"},
            "alignment": {**_UNIT, "default": ALIGNMENT, "description": "North star alignment score"},
            "force": {
                "type": "boolean",
                "default": False,
                "description": "Broadcast even if below the threshold",
            },
        },
        "required": ["memory_id"],
    },
    output_schema=writes.output_schema(
        {
            "memory_id": {"type": "string"},
            "new_r": {**_UNIT, "description": "How far the views agreed on what was found last"},
            "was_selected": _FLAG,
            "is_broadcasting": _FLAG,
            "score": {"type": ["number", "null"], "description": "r · importance · alignment"},
            "dopamine_triggered": _FLAG,
            "losers": {"type": ["array", "null"], "items": {"type": "string"}},
            "reason": {"type": ["string", "null"]},
            "followed_from": {"type": "string", "description": "The id that was given, of a memory that was merged"},
        }
    ),
)
