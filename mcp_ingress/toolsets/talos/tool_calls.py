"""`session.tool_call`: the telemetry that a call of any tool leaves in a Talos session."""

from __future__ import annotations

from mcp_ingress.records import Invocation
from streams.events import Event, wire_type
from streams.ids import uuid7
from streams.topics import TELEMETRY

SESSION_TOOL_CALL = wire_type("session.tool_call")


def tool_call(call: Invocation, session_id: str) -> tuple[str, Event]:
    """The topic and the event: the tool's name, how long it took and what came of it."""
    attributes = {
        "talos.session.id": session_id,
        "talos.tool.name": call.name,
        "talos.tool.success": call.outcome == "ok",
        "talos.tool.duration_ms": call.duration_ms,
    }
    if call.error_code is not None:
        attributes["talos.tool.error_type"] = call.error_code
    data = {"trace_id": f"sess-{session_id}", "span_id": uuid7().hex[-16:], "attributes": attributes}
    return TELEMETRY.name, call.event(SESSION_TOOL_CALL, data, session_id)
