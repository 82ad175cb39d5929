"""store_raw_dialogue: keep a line of dialogue as it was said."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from processors.cognitive.rules.identifiers import event_number
from streams.clock import format_time

_FIELDS = ("session_id", "speaker", "content")


async def store_dialogue(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish and answer at once: the same line twice is two lines."""
    answers.checked_texts(arguments, *_FIELDS)
    event = writes.request(call, "cm.l0.stored", {name: arguments.get(name) for name in (*_FIELDS, "metadata")})
    published = await writes.publish(call, event)
    own = {"id": event_number(event), "timestamp": format_time(event.time), "session_id": arguments["session_id"]}
    return answers.written(published, own)


TOOL = Tool(
    name="store_raw_dialogue",
    toolset="cognitive_memory",
    title="Store raw dialogue",
    description="Store raw dialogue data to L0 memory",
    kind="write",
    handler=store_dialogue,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "Unique identifier for the dialogue session"},
            "speaker": {"type": "string", "description": "Speaker identifier (user, assistant, etc.)"},
            "content": {"type": "string", "description": "Dialogue content text"},
            "metadata": {"type": "object", "description": "Additional metadata for the dialogue (optional)"},
        },
        "required": ["session_id", "speaker", "content"],
    },
    output_schema=answers.output_schema({"id": answers.ID, "timestamp": answers.TEXT, "session_id": answers.TEXT}),
)
