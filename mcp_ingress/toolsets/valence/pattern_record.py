"""pattern_record: note a pattern of behaviour."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import unknown_sessions
from processors.valence.rules import patterns
from processors.valence.rules.identifiers import PATTERN, object_id
from streams.clock import format_time
from streams.errors import Unavailable


async def record_pattern(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish and answer at once; evidence that no session is known of is kept and said."""
    for name in ("type", "description"):
        writes.checked_text(arguments, name)
    request = writes.request(call, "valence.pattern.recorded", arguments)
    fresh = patterns.recorded(arguments.get("evidence") or (), arguments["confidence"], request.time)
    pattern = {
        "id": object_id(request, PATTERN),
        "type": arguments["type"],
        "description": arguments["description"],
        "evidence": list(fresh.evidence),
        "occurrence_count": fresh.occurrence_count,
        "confidence": fresh.confidence,
        "status": fresh.status,
        "first_observed": format_time(request.time),
        "last_observed": format_time(fresh.last_observed),
    }
    published = await writes.publish(call, request)
    warnings = await _warnings(call, fresh.evidence)
    return writes.written(published, {"pattern_id": pattern["id"], "pattern": pattern}, warnings=warnings)


async def _warnings(call: Call, evidence: Sequence[str]) -> list[str]:
    """A line for each session that is surely unknown; none while the store is behind or down."""
    if not evidence or not call.holds(call.read_token):
        return []
    try:
        unknown = await call.read(functools.partial(unknown_sessions, namespace=call.namespace, session_ids=evidence))
    except Unavailable:
        return []
    return [f"There is no session {session_id[:80]}: it is kept as evidence." for session_id in unknown]


TOOL = Tool(
    name="pattern_record",
    toolset="valence",
    title="Record a pattern",
    description="Record a new behavioral pattern.",
    kind="write",
    handler=record_pattern,
    memory_operation="create_memory",
    truncation=Truncation({"pattern": answers.PATTERN_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "Pattern type (topic_recurrence, preference, etc.)"},
            "description": {"type": "string", "description": "What the pattern is"},
            "evidence": {"type": "array", "items": {"type": "string"}, "description": "Session IDs as evidence"},
            "confidence": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "default": patterns.DEFAULT_CONFIDENCE,
                "x-error-code": "INVALID_PARAMS",
                "description": "How sure it is that this is a pattern",
            },
        },
        "required": ["type", "description"],
    },
    output_schema=writes.output_schema({"pattern_id": {"type": "string"}, "pattern": answers.PATTERN_SCHEMA}),
)
