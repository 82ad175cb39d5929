"""session_find_by_room: the newest conversation of a room of a chat platform."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import list_sessions

_FILTERS = ("external_room_id", "platform", "status")


async def find_session_by_room(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The newest match in whatever status, unless one is asked for; no match is not an error."""
    writes.checked_text(arguments, "external_room_id")
    filters = {name: arguments.get(name) for name in _FILTERS}
    is_fresh = await call.fresh()
    sessions, _ = await call.read(functools.partial(list_sessions, namespace=call.namespace, filters=filters, limit=1))
    return common.read_answer({"found": bool(sessions), "session": sessions[0] if sessions else None}, is_fresh)


TOOL = Tool(
    name="session_find_by_room",
    toolset="valence",
    title="Find a room's conversation",
    description="Find a session by external room ID (for chat platform integrations).",
    kind="read",
    handler=find_session_by_room,
    memory_operation="search_memory",
    truncation=Truncation({"session": answers.SESSION_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "external_room_id": {"type": "string", "description": "Room/channel ID from the chat platform"},
            "platform": {"type": "string", "description": "Platform name (matrix, slack, etc.)"},
            "status": {
                "type": "string",
                "enum": answers.STATUSES,
                "x-error-code": "INVALID_PARAMS",
                "description": "Filter by session status",
            },
        },
        "required": ["external_room_id"],
    },
    output_schema=writes.output_schema(
        {"found": {"type": "boolean"}, "session": {"anyOf": [answers.SESSION_SCHEMA, {"type": "null"}]}}
    ),
)
