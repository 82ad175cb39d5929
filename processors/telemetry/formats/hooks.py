"""Reads what Claude Code or Codex gives its hooks, one JSON object an event: the two are alike.

The session's transcript is imported later. A hook's event says that and when something happened, with its payload;
texts and usage come from the transcript, so that nothing counts twice. A tool call is named by its tool-use id in both,
and so is one row of `tool_calls`.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import orjson

from processors.telemetry.formats.claude_code import AGENT
from processors.telemetry.formats.lines import Unreadable, filled, identifier, read_object
from processors.telemetry.formats.transcript import session_event, session_fields, tool_call, tool_result
from streams.errors import Refused
from streams.events import Event
from streams.ids import derived_id

SOURCES = "thalweg:hook/"
"""Before the agent's name: the source of the events of its hooks."""
PREFIX = "hook."


def hook_event(name: str, raw: bytes, *, namespace: str, identity: str, time: datetime, agent: str = AGENT) -> Event:
    """The event of what a hook was given on stdin; `identity` names it unless a tool-use id does. Raises Refused."""
    entry = read_object(1, raw)
    if isinstance(entry, Unreadable):
        raise Refused(f"The hook's input is not a JSON object: {entry.reason}.")
    session_id = identifier(entry.get("session_id"))
    if session_id is None:
        raise Refused("The hook's input names no session: `session_id` is missing.")
    if entry.get("hook_event_name", name) != name:
        raise Refused(
            f"The hook's input is of the event {entry['hook_event_name']!r} and not of {name!r}; "
            "the command of a hook names its own event."
        )
    source, call = SOURCES + agent, identifier(entry.get("tool_use_id"))
    if call is not None:
        identity = derived_id(source, session_id, name, call)
    begun, ended = _tool(name, entry, call, time)
    return session_event(
        source,
        namespace,
        identity,
        time,
        session_id,
        PREFIX + name,
        payload=entry,
        session=session_fields(agent, project=entry.get("cwd"), model=entry.get("model")),
        tool_calls=[begun] if begun else [],
        tool_results=[ended] if ended else [],
    )


def _tool(
    name: str, entry: dict[str, Any], call: str | None, time: datetime
) -> tuple[dict[str, Any] | None, dict[str, Any] | None]:
    """The call that a tool's hook reports, or its result, which names the tool before a transcript does."""
    if name == "PreToolUse":
        return tool_call(call, entry.get("tool_name"), time, entry.get("tool_input")), None
    if name not in ("PostToolUse", "PostToolUseFailure"):
        return None, None
    response = entry.get("tool_response", entry.get("error"))
    output = response if isinstance(response, str) else orjson.dumps(response).decode() if response is not None else ""
    is_error = name == "PostToolUseFailure"
    result = tool_result(call, time, output, is_error=is_error, duration_ms=entry.get("duration_ms"))
    tool = filled(entry.get("tool_name"))
    if result is not None and tool is not None:
        result |= {"tool_name": tool, "input": entry.get("tool_input")}
    return None, result
