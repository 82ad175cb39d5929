"""pattern_list: patterns, the most often met first."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import list_patterns as list_rows
from processors.valence.rules.patterns import EMERGING, ESTABLISHED, FADING


async def list_patterns(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Patterns with their status by now; archived ones are not listed."""
    query = functools.partial(
        list_rows,
        namespace=call.namespace,
        now=call.clock.now(),
        kind=arguments.get("type"),
        status=arguments.get("status"),
        min_confidence=float(arguments["min_confidence"]),
        limit=common.checked_limit(arguments),
    )
    is_fresh = await call.fresh()
    patterns, total = await call.read(query)
    return common.read_answer({"patterns": patterns, "total_count": total}, is_fresh)


TOOL = Tool(
    name="pattern_list",
    toolset="valence",
    title="List patterns",
    description="List patterns with filters.",
    kind="read",
    handler=list_patterns,
    memory_operation="search_memory",
    truncation=Truncation(
        {"patterns": answers.PATTERN_TEXTS},
        onward="{shown} patterns fit: narrow the list by `type`, `status` or `min_confidence`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "type": {"type": "string", "description": "Only of this type"},
            "status": {
                "type": "string",
                "enum": [EMERGING, ESTABLISHED, FADING],
                "x-error-code": "INVALID_PARAMS",
                "description": "Only of this status",
            },
            "min_confidence": {"type": "number", "default": 0, "description": "Only of at least this confidence"},
            "limit": {"type": "integer", "default": 20, "description": "Maximum results"},
        },
    },
    output_schema=writes.output_schema(
        {"patterns": {"type": "array", "items": answers.PATTERN_SCHEMA}, "total_count": common.TOTAL}
    ),
)
