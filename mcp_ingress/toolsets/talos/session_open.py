"""session_open: start a telemetry session on what is known."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.talos import answers
from mcp_ingress.toolsets.talos.queries import count_inherited
from mcp_ingress.toolsets.talos.session_names import NAMES, UNCONFIGURED, default_names
from processors.talos.rules.identifiers import goal_id, named_id, wordless_id
from processors.talos.rules.ontology import INHERITED_LABELS


async def open_session(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish, await the decision, count what the session inherits. Of two opens with one id the log's first wins."""
    session_id = str(answers.checked_session_id(arguments["session_id"]))
    goal = writes.checked_text(arguments, "goal").strip()
    defaults = {name: value for name, value in default_names(call.services).items() if name not in arguments}
    names = {name: {**arguments, **defaults}[name] for name in NAMES}
    opening = {"session_id": session_id, "goal": goal, **names, "defaulted": list(defaults) or None}
    request = writes.request(call, "talos.session.opened", opening, subject=session_id)
    published = await writes.publish(call, request)
    query = functools.partial(count_inherited, namespace=call.namespace, session_id=session_id)
    waits = [writes.caught_up(call, published, "extract")]
    _, counts, problem = await writes.decision_and_state(
        call, published, query, waits, needs_waits=True, session_id=session_id
    )
    call.connection.open_session_id = session_id
    total = None if counts is None else sum(counts.values())
    published = await answers.emit(call, published, *_telemetry(call, opening, total))
    fields = {"inherited_count": total, "inherited_summary": counts or dict.fromkeys(INHERITED_LABELS)}
    return writes.written(published, {"session_id": session_id}, fields, pending=counts is None, problem=problem)


def _telemetry(call: Call, fields: dict[str, Any], inherited_count: int | None) -> list[Any]:
    session_id, goal = fields["session_id"], wordless_id(goal_id(fields["goal"]))
    names = {f"{kind}.id": wordless_id(named_id(kind, fields[kind])) for kind in NAMES if (fields[kind] or "").strip()}
    started = {"goal.id": goal, **names, "inherited_count": inherited_count}
    created = {"goal.id": goal, "goal.scope": "session", "goal.to": "active"}
    return [
        answers.telemetry(call, "session.start", session_id, started),
        answers.telemetry(call, "goal.created", session_id, created),
    ]


def _name(name: str, description: str) -> dict[str, Any]:
    """A name that the node's settings have where the caller does not say it."""
    default = getattr(UNCONFIGURED, name)
    return {"type": "string", "description": description, "default": default, "x-default-from-state": True}


TOOL = Tool(
    name="session_open",
    toolset="talos",
    title="Open a session",
    description="Initialize a telemetry session. Captures inherited knowledge state and emits session.start event. "
    "Call after LBRP completion.",
    kind="write",
    handler=open_session,
    defaults=default_names,
    input_schema={
        "type": "object",
        "properties": {
            "session_id": {"type": "string", "description": "Unique session identifier (format: YYYY-MM-DD-slug)"},
            "goal": {"type": "string", "description": "Declared session goal from LBRP"},
            "persona": _name("persona", "Active persona (Talos, Sage, etc.)"),
            "protocol": _name("protocol", "Opening protocol used"),
            "human": _name("human", "Human collaborator"),
        },
        "required": ["session_id", "goal"],
    },
    output_schema=writes.output_schema(
        {
            "session_id": {"type": "string"},
            "inherited_count": answers.COUNT_SCHEMA,
            "inherited_summary": {
                "type": "object",
                "properties": dict.fromkeys(INHERITED_LABELS, answers.COUNT_SCHEMA),
            },
        }
    ),
)
