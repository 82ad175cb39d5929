"""session_end: close a conversation with what it was about."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import find_session
from streams.event_types.valence_kb import END_STATUSES


async def end_session(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, await the decision, answer the session; the first end keeps its time."""
    session_id = common.checked_id(arguments, "session_id")
    request = writes.request(call, "valence.session.ended", {**arguments, "session_id": session_id}, subject=session_id)
    published = await writes.publish(call, request)
    result, problem = await writes.decision(call, published, session_id=session_id)
    session = None
    if result is not None:
        session = await call.read(functools.partial(find_session, namespace=call.namespace, session_id=session_id))
    fields = {
        "session_id": session_id,
        "session": session,
        "already_ended": None if result is None else result["already_ended"],
    }
    return writes.written(published, fields, pending=result is None, problem=problem)


TOOL = Tool(
    name="session_end",
    toolset="valence",
    title="End a conversation",
    description="Close a session with summary and themes. "
    "Ending it again keeps the time of its end and replaces what is given.",
    kind="write",
    handler=end_session,
    memory_operation="update_memory",
    idempotent=True,
    truncation=Truncation({"session": answers.SESSION_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "UUID of the session"},
            "summary": {"type": "string", "description": "Session summary"},
            "themes": {"type": "array", "items": {"type": "string"}, "description": "Key themes from session"},
            "status": {
                "type": "string",
                "enum": END_STATUSES,
                "default": "completed",
                "x-default-from-state": True,  # of a session that has ended already, its status
                "x-error-code": "INVALID_PARAMS",
                "description": "How it ended",
            },
        },
        "required": ["session_id"],
    },
    output_schema=writes.output_schema(
        {
            "session_id": {"type": "string"},
            "session": {"anyOf": [answers.SESSION_SCHEMA, {"type": "null"}]},
            "already_ended": {"type": ["boolean", "null"]},
        }
    ),
)
