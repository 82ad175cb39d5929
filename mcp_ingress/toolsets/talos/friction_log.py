"""friction_log: note what made the work difficult, and say whether it did so before."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.services import Published
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.talos import answers
from mcp_ingress.toolsets.talos.queries import Recurrence, find_recurrence
from processors.talos.rules.extraction import extract
from streams.errors import Unavailable
from streams.event_types.talos import FRICTION_CATEGORIES

NO_SESSION = "Without a session_id there is nothing that the blocking friction could be linked to (BLOCKED_BY)."


async def log_friction(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, wait for the dedup stage, and answer how often this friction occurred."""
    description, category = writes.checked_text(arguments, "description"), arguments["category"]
    session_id, blocking = answers.checked_session_id(arguments.get("session_id")), bool(arguments.get("blocking"))
    fields = {"description": description, "category": category, "session_id": session_id, "blocking": blocking}
    event = writes.request(call, "talos.friction.logged", fields, subject=session_id)
    friction = extract(event).entities[0]
    knowledge = {"id": friction.id, "category": category, "confidence": friction.confidence}
    published = await answers.publish_entry(call, event, "knowledge.friction", knowledge)
    recurrence, problem = await _find(call, published, friction.id)
    warnings = await answers.unknown_session_warnings(call, session_id)
    if blocking and session_id is None:
        warnings.append(NO_SESSION)
    own, found = {"friction_id": friction.id}, _recurrence(recurrence)
    return writes.written(published, own, found, pending=recurrence is None, problem=problem, warnings=warnings)


async def _find(call: Call, published: Published, friction_id: str) -> tuple[Recurrence | None, Unavailable | None]:
    """The friction's recurrence, and the error when the store did not answer.

    The first is None until the dedup stage has compared the friction.
    """
    key = (call.namespace, friction_id)
    read = functools.partial(find_recurrence, namespace=call.namespace, friction_id=friction_id)
    try:
        if not await writes.caught_up(call, published, "dedup"):
            return None, None
        if call.services.recent("entities", key) is not None and not call.services.may_hold("merges", key):
            return Recurrence(1, []), None  # stored and merged with nothing: the store need not be asked
        return await call.read(read), None
    except Unavailable as error:
        return None, error


def _recurrence(found: Recurrence | None) -> dict[str, Any]:
    if found is None:
        return {"is_recurring": None, "recurrence_count": None, "similar_frictions": []}
    return {"is_recurring": found.count >= 2, "recurrence_count": found.count, "similar_frictions": found.similar}


TOOL = Tool(
    name="friction_log",
    toolset="talos",
    title="Log a friction",
    description="Log a friction point. Simpler than journal_write for quick capture during flow.",
    kind="write",
    handler=log_friction,
    memory_operation="create_memory",
    truncation=Truncation({"similar_frictions": {"description": "{id}"}}),
    input_schema={
        "type": "object",
        "properties": {
            "description": {"type": "string", "description": "Brief description of the friction"},
            "category": {**answers.category_schema(FRICTION_CATEGORIES), "description": "Friction category"},
            "session_id": {"type": "string", "description": "Associated session"},
            "blocking": {
                "type": "boolean",
                "description": "Whether this friction is blocking progress",
                "default": False,
            },
        },
        "required": ["description", "category"],
    },
    output_schema=writes.output_schema(
        {
            "friction_id": {"type": "string"},
            "is_recurring": {"type": ["boolean", "null"]},
            "recurrence_count": answers.COUNT_SCHEMA,
            "similar_frictions": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}, "description": {"type": "string"}},
                    "required": ["id", "description"],
                },
            },
        }
    ),
)
