"""session_get: a conversation, and what was said last in it."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.kb_queries import find_session, last_exchanges


async def get_session(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The session, with its last exchanges in the order in which they were said when they are asked for."""
    session_id = answers.checked_conversation(arguments)
    limit = common.checked_limit(arguments, "exchange_limit", answers.MAX_EXCHANGES)
    is_fresh = await call.fresh()
    session = await call.find(functools.partial(find_session, namespace=call.namespace, session_id=session_id))
    if session is None:
        raise answers.not_found(session_id)
    fields: dict[str, Any] = {"session": session}
    if arguments["include_exchanges"]:
        query = functools.partial(last_exchanges, namespace=call.namespace, session_id=session_id, limit=limit)
        fields["exchanges"] = await call.read(query)
    return common.read_answer(fields, is_fresh)


TOOL = Tool(
    name="session_get",
    toolset="valence",
    title="Look at a conversation",
    description="Get session details. Conversations read from transcripts are there under the id of their transcript.",
    kind="read",
    handler=get_session,
    memory_operation="search_memory",
    truncation=Truncation(
        {"session": answers.SESSION_TEXTS, "exchanges": answers.EXCHANGE_TEXTS},
        onward="{shown} exchanges fit: exchange_list reads all, from any number by its `offset`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "UUID of the session"},
            "include_exchanges": {"type": "boolean", "default": False, "description": "Include recent exchanges"},
            "exchange_limit": {"type": "integer", "default": 10, "description": "How many of the last exchanges"},
        },
        "required": ["session_id"],
    },
    output_schema=writes.output_schema(
        {"session": answers.SESSION_SCHEMA, "exchanges": {"type": "array", "items": answers.EXCHANGE_SCHEMA}}
    ),
)
