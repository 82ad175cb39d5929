"""session_close: end a telemetry session and ask for the reflection."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.talos import answers
from mcp_ingress.toolsets.talos.queries import SessionCounters, count_session
from processors.talos.rules.identifiers import wordless_id
from streams.topics import TELEMETRY

_FIELDS = ("session_id", "goal_achieved", "summary", "skip_reflection")
# The trailing spaces of the second question are part of the published interface.
REFLECTION_PROMPT = """Session closing. Mandatory reflection:

1. What friction points occurred? (will create Friction entities)
2. What insights emerged? (will create Insight entities)  
3. What patterns were noticed? (will update Pattern entities)
4. What operational states were experienced? (will create EXPERIENCED_STATE relationships)

Respond with natural language; Graphiti will extract entities."""


async def close_session(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, await the decision, count what the session did."""
    session_id = str(answers.checked_session_id(arguments["session_id"]))
    records = await call.own_records()  # a call that has just been answered counts
    telemetry_token = call.read_token.merged(call.connection.last_writes).merged(records).on_topic(TELEMETRY.name)
    closing = {name: arguments.get(name) for name in _FIELDS}
    request = writes.request(call, "talos.session.closed", closing, subject=session_id)
    published = await writes.publish(call, request)
    limit_s = writes.time_left(call, call.services.limits.write_wait_s)
    waits = [call.applied(telemetry_token, timeout_s=limit_s), writes.caught_up(call, published, "extract")]
    query = functools.partial(count_session, namespace=call.namespace, session_id=session_id)
    result, counters, problem = await writes.decision_and_state(call, published, query, waits, session_id=session_id)
    if call.connection.open_session_id == session_id:
        call.connection.open_session_id = None
    ended = _telemetry(call, session_id, arguments.get("goal_achieved"), result, counters)
    published = await answers.emit(call, published, *ended)
    fields = _statistics(result, counters) | _reflection(bool(arguments.get("skip_reflection")))
    return writes.written(published, {"session_id": session_id}, fields, pending=counters is None, problem=problem)


def _statistics(result: Mapping[str, Any] | None, counters: SessionCounters | None) -> dict[str, Any]:
    return {
        "duration_seconds": result["duration_seconds"] if result and counters else None,
        "token_count": counters.token_count if counters else None,
        "tool_calls": counters.tool_calls if counters else None,
    }


def _reflection(skip: bool) -> dict[str, Any]:
    return {"requires_reflection": not skip, "reflection_prompt": None if skip else REFLECTION_PROMPT}


def _telemetry(
    call: Call,
    session_id: str,
    goal_achieved: bool | None,
    result: Mapping[str, Any] | None,
    counters: SessionCounters | None,
) -> list[Any]:
    ended = {"goal_achieved": goal_achieved, "duration_seconds": result["duration_seconds"] if result else None}
    if counters is not None:
        names = ("token_count", "insights_produced", "frictions_logged")
        ended |= {name: getattr(counters, name) for name in names}
    events = [answers.telemetry(call, "session.end", session_id, ended)]
    if result is not None and goal_achieved is not None:
        change = {
            "goal.id": wordless_id(result["goal_id"]),
            "goal.from": "active",
            "goal.to": "achieved" if goal_achieved else "abandoned",
        }
        events.append(answers.telemetry(call, "goal.status_change", session_id, change | {"goal.scope": "session"}))
    return events


TOOL = Tool(
    name="session_close",
    toolset="talos",
    title="Close a session",
    description="Finalize a telemetry session. "
    "Triggers mandatory reflection prompt, updates session metrics, emits session.end event.",
    kind="write",
    handler=close_session,
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "Session identifier to close"},
            "goal_achieved": {"type": "boolean", "description": "Whether session goal was achieved"},
            "summary": {"type": "string", "description": "Brief session summary"},
            "skip_reflection": {
                "type": "boolean",
                "description": "Skip mandatory reflection (use sparingly)",
                "default": False,
            },
        },
        "required": ["session_id"],
    },
    output_schema=writes.output_schema(
        {
            "session_id": {"type": "string"},
            "duration_seconds": answers.COUNT_SCHEMA,
            "token_count": answers.COUNT_SCHEMA,
            "tool_calls": answers.COUNT_SCHEMA,
            "requires_reflection": {"type": "boolean"},
            "reflection_prompt": {"type": ["string", "null"]},
        }
    ),
)
