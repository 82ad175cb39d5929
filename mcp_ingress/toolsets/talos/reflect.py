"""reflect: keep a moment of stepping back, and say at once what is found in it."""

from __future__ import annotations

from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.talos import answers
from processors.talos.rules.extraction import extract

TRIGGER_TYPES = frozenset({"query_result", "pattern_notice", "session_close"})


async def write_reflection(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish the reflection and answer from the same pure extraction that the `extract` stage runs."""
    session_id = answers.checked_session_id(arguments.get("session_id"))
    trigger = (arguments.get("trigger") or "").strip() or None
    fields = {"content": writes.checked_text(arguments, "content"), "trigger": trigger, "session_id": session_id}
    event = writes.request(call, "talos.reflection.written", fields, subject=session_id)
    reflection, *found = extract(event).entities
    triggered = {"id": reflection.id, "type": trigger if trigger in TRIGGER_TYPES else "other"}
    published = await answers.publish_entry(call, event, "reflection.triggered", triggered)
    warnings = await answers.unknown_session_warnings(call, session_id)
    entities = [{"type": entity.label, "id": entity.id} for entity in found]
    answer = {"reflection_id": reflection.id, "extracted_entities": entities}
    return writes.written(published, answer, warnings=warnings)


TOOL = Tool(
    name="reflect",
    toolset="talos",
    title="Reflect",
    description="Capture a meta-cognitive reflection. Use when stepping back to observe patterns, question "
    "assumptions, or notice something about the process.",
    kind="write",
    handler=write_reflection,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "The reflection content"},
            "trigger": {"type": "string", "description": "What prompted this reflection"},
            "session_id": {"type": "string", "description": "Associated session"},
        },
        "required": ["content"],
    },
    output_schema=writes.output_schema({"reflection_id": {"type": "string"}, "extracted_entities": answers.IDS_SCHEMA}),
)
