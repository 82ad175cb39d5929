"""session_start: begin a conversation."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import kb_answers as answers
from processors.valence.rules.conversations import new_session
from processors.valence.rules.identifiers import SESSION, object_id
from streams.clock import format_time
from streams.event_types.valence_kb import PLATFORMS
from streams.events import Event


async def start_session(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish and answer at once: nothing of a new session depends on what is stored."""
    request = writes.request(call, "valence.session.started", arguments)
    session = _session(request)
    published = await writes.publish(call, request)
    return writes.written(published, {"session_id": session["id"], "session": session})


def _session(request: Event) -> dict[str, Any]:
    moment = format_time(request.time)
    own = {"id": object_id(request, SESSION), "started_at": moment, "created_at": moment, "source": "valence"}
    return own | new_session(request.data)


TOOL = Tool(
    name="session_start",
    toolset="valence",
    title="Begin a conversation",
    description="Begin a new conversation session.",
    kind="write",
    handler=start_session,
    memory_operation="create_memory",
    truncation=Truncation({"session": answers.SESSION_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "platform": {
                "type": "string",
                "enum": PLATFORMS,
                "x-error-code": "INVALID_PARAMS",
                "description": "Platform this session is on",
            },
            "project_context": {"type": "string", "description": "Project or topic context"},
            "external_room_id": {"type": "string", "description": "Room/channel ID for chat platforms"},
            "metadata": {"type": "object", "description": "Additional session metadata"},
        },
        "required": ["platform"],
    },
    output_schema=writes.output_schema({"session_id": {"type": "string"}, "session": answers.SESSION_SCHEMA}),
)
