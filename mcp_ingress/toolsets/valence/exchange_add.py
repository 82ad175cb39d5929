"""exchange_add: keep a turn of a conversation under its number."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import common
from mcp_ingress.toolsets.valence import kb_answers as answers
from mcp_ingress.toolsets.valence.belief_writes import find_neighbours, with_similar
from mcp_ingress.toolsets.valence.part import Valence
from processors.valence.rules.capture import capture
from processors.valence.rules.conversations import tokens_approx
from processors.valence.rules.identifiers import EXCHANGE, object_id
from streams.event_types.valence_kb import ROLES
from streams.events import Event


async def add_exchange(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish and await the number that the single writer gives in the order of the log.

    With auto-capture on, a request for an insight of the turn goes along.
    """
    session_id, content = common.checked_id(arguments, "session_id"), writes.checked_text(arguments, "content")
    turn = {**arguments, "session_id": session_id}
    request = writes.request(call, "valence.exchange.added", turn, subject=session_id)
    exchange_id = object_id(request, EXCHANGE)
    insight = (
        await _insight_request(call, session_id, arguments["role"], content) if call.part(Valence).auto_capture else []
    )
    published = await writes.publish(call, request, *insight)
    result, problem = await writes.decision(call, published, exchange_id=exchange_id)
    sequence = None if result is None else result["sequence"]
    exchange = answers.exchange(request, exchange_id, sequence, tokens_approx(content))
    if result is not None:
        exchange["created_at"] = result["created_at"]  # of a request that came before: the time of the one that stands
    fields = {"exchange_id": exchange_id, "sequence": sequence, "exchange": exchange}
    return writes.written(published, fields, pending=result is None, problem=problem)


async def _insight_request(call: Call, session_id: str, role: str, content: str) -> list[Event]:
    """The request for an insight of this turn, under a request id of its own. Empty without one."""
    found = capture(role, content)
    if found is None:
        return []
    own = replace(call, request_id=f"{call.request_id}/capture")
    fields = {"session_id": session_id, "content": found.content, "confidence": found.score, "signal": found.signal}
    request = writes.request(own, "valence.insight.extracted", fields, subject=session_id)
    return [with_similar(request, await find_neighbours(call, found.content))]


TOOL = Tool(
    name="exchange_add",
    toolset="valence",
    title="Record a turn",
    description="Record a conversation turn. "
    "Turns of a session are numbered from 1 without gaps, also when they come at the same time.",
    kind="write",
    handler=add_exchange,
    memory_operation="create_memory",
    truncation=Truncation({"exchange": answers.EXCHANGE_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "UUID of the session"},
            "role": {"type": "string", "enum": ROLES, "x-error-code": "INVALID_PARAMS", "description": "Who said it"},
            "content": {"type": "string", "description": "Message content"},
            "tool_uses": {"type": "array", "description": "Tools used in this turn"},
        },
        "required": ["session_id", "role", "content"],
    },
    output_schema=writes.output_schema(
        {
            "exchange_id": {"type": "string"},
            "sequence": {"type": ["integer", "null"], "minimum": 1},
            "exchange": answers.EXCHANGE_SCHEMA,
        }
    ),
)
