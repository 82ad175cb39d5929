"""Builds the events of an agent's transcript from the parts that each format's reader finds."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from processors.telemetry.formats.lines import count, filled, identifier, number
from processors.telemetry.formats.tool_errors import error_type
from streams.clock import format_time
from streams.event_types.telemetry import SESSION_EVENT
from streams.events import Event


def session_fields(agent: str, *, project: Any = None, model: Any = None, parent: str | None = None) -> dict[str, Any]:
    """What a line says of its session; what it does not say is left out."""
    fields: dict[str, Any] = {"source": agent, "agent": agent}
    if isinstance(project, str) and project:
        fields["project"] = project
    if isinstance(model, str) and model:
        fields["model"] = model
    if parent:
        fields["parent_session_id"] = parent
    return fields


def session_event(
    source: str,
    namespace: str,
    event_id: str,
    time: datetime,
    session_id: str,
    event_type: str,
    *,
    subject: str | None = None,
    **data: Any,
) -> Event:
    """An event of one line. Of `data`, what is None or an empty list is left out."""
    body: dict[str, Any] = {"session_id": session_id, "event_type": event_type}
    for name, value in data.items():
        if value is not None and value != []:
            body[name] = value
    return Event(event_id, source, SESSION_EVENT, namespace, time, body, subject)


def tool_call(call_id: Any, name: Any, started_at: datetime, given: Any) -> dict[str, Any] | None:
    """A tool use; None when the line does not name the call."""
    call = identifier(call_id)
    if call is None:
        return None
    return {
        "tool_call_id": call,
        "tool_name": filled(name) or "unknown",
        "started_at": format_time(started_at),
        "input": given,
    }


def tool_result(
    call_id: Any, ended_at: datetime, text: str, *, is_error: bool, duration_ms: Any = None, error: str | None = None
) -> dict[str, Any] | None:
    """A tool's result; `text` is its whole output, of which only the size is kept here. None without a call id."""
    call = identifier(call_id)
    if call is None:
        return None
    result: dict[str, Any] = {"tool_call_id": call, "ended_at": format_time(ended_at), "is_error": is_error}
    result["output_bytes"] = len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if is_error:
        result["error_type"] = error or error_type(text)
    duration = number(duration_ms)
    if duration is not None:
        result["duration_ms"] = duration
    return result


def model_call(
    message_id: str,
    model: Any,
    *,
    input_tokens: Any,
    output_tokens: Any,
    cache_read_tokens: Any = None,
    cache_creation_tokens: Any = None,
    cost_usd: Any = None,
    latency_ms: float | None = None,
) -> dict[str, Any]:
    """One line's view of a model call; a number that is missing or no number is null."""
    return {
        "message_id": message_id,
        "model": filled(model),
        "input_tokens": count(input_tokens),
        "output_tokens": count(output_tokens),
        "cache_read_tokens": count(cache_read_tokens),
        "cache_creation_tokens": count(cache_creation_tokens),
        "cost_usd": number(cost_usd),
        "latency_ms": latency_ms,
    }


class Repeats:
    """Numbers equal contents of one file. So two equal lines without a time of their own stay two events."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def name(self, content: str) -> str:
        """The content itself the first time, then `<content>#1`, `<content>#2` …"""
        seen = self._seen.get(content, 0)
        self._seen[content] = seen + 1
        return content if seen == 0 else f"{content}#{seen}"
