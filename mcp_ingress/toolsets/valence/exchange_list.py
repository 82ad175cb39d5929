"""exchange_list: what was said in a conversation, in order."""

from __future__ import annotations

from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import find_session
from mcp_ingress.toolsets.valence.kb_queries import list_exchanges as list_rows


async def list_exchanges(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The session's exchanges by number; an offset also works without a limit."""
    session_id = answers.checked_conversation(arguments)
    limit = common.checked_limit({"limit": answers.MAX_EXCHANGES, **arguments}, most=answers.MAX_EXCHANGES)
    offset = arguments["offset"]
    if offset < 0:
        raise writes.invalid(f"The argument `offset` is {offset}; it must be 0 or more.", "offset", {"minimum": 0})
    is_fresh = await call.fresh()

    def read(cursor: duckdb.DuckDBPyConnection) -> tuple[list[dict[str, Any]], int] | None:
        exchanges, total = list_rows(cursor, call.namespace, session_id, limit, offset)
        return (exchanges, total) if total or find_session(cursor, call.namespace, session_id) else None

    found = await call.find(read)
    if found is None:
        raise answers.not_found(session_id)
    exchanges, total = found
    return common.read_answer({"exchanges": exchanges, "total_count": total}, is_fresh)


TOOL = Tool(
    name="exchange_list",
    toolset="valence",
    title="Read a conversation",
    description="Get exchanges from a session.",
    kind="read",
    handler=list_exchanges,
    memory_operation="search_memory",
    truncation=Truncation(
        {"exchanges": answers.EXCHANGE_TEXTS},
        onward="{shown} exchanges fit: ask again with `offset` {next} for the next.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "UUID of the session"},
            "limit": {
                "type": "integer",
                "description": f"At most this many; without it all, at most {answers.MAX_EXCHANGES}",
            },
            "offset": {"type": "integer", "default": 0, "description": "How many of the first are passed over"},
        },
        "required": ["session_id"],
    },
    output_schema=writes.output_schema(
        {"exchanges": {"type": "array", "items": answers.EXCHANGE_SCHEMA}, "total_count": common.TOTAL}
    ),
)
