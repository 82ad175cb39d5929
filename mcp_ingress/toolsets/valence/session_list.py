"""session_list: sessions of every kind, newest first."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import list_sessions as list_rows

_FILTERS = ("platform", "project_context", "status")


async def list_sessions(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Sessions that match exactly; a value that nothing has matches nothing."""
    limit = common.checked_limit(arguments)
    filters = {name: arguments.get(name) for name in _FILTERS}
    is_fresh = await call.fresh()
    sessions, total = await call.read(
        functools.partial(list_rows, namespace=call.namespace, filters=filters, limit=limit)
    )
    return common.read_answer({"sessions": sessions, "total_count": total}, is_fresh)


TOOL = Tool(
    name="session_list",
    toolset="valence",
    title="List conversations",
    description="List sessions with filters: conversations, sessions of the journal, imported transcripts. "
    "`source` says which.",
    kind="read",
    handler=list_sessions,
    memory_operation="search_memory",
    truncation=Truncation(
        {"sessions": answers.SESSION_TEXTS},
        onward="{shown} sessions fit: narrow the list by `platform`, `project_context` or `status`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "platform": {
                "type": "string",
                "description": "Only of this platform; `talos`: sessions of the journal; of a transcript: its agent",
            },
            "project_context": {"type": "string", "description": "Only of this project or topic"},
            "status": {"type": "string", "description": "Only of this status: active, completed or abandoned"},
            "limit": {"type": "integer", "default": 20, "description": "Maximum results"},
        },
    },
    output_schema=writes.output_schema(
        {"sessions": {"type": "array", "items": answers.SESSION_SCHEMA}, "total_count": common.TOTAL}
    ),
)
