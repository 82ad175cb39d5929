"""One record for each call of an MCP tool; never a body."""

from streams.event_types import COUNT, FILLED, NUMBER, OPTIONAL, obj
from streams.events import EventType, wire_type
from streams.topics import INVOCATIONS

TOOL_INVOKED = wire_type("tool.invoked")

EVENT_TYPES = (
    EventType(
        TOOL_INVOKED,
        INVOCATIONS.name,
        "A tool was called through MCP: whatever came of it.",
        obj(
            {
                "tool": FILLED,
                "outcome": {"enum": ["ok", "error", "refused", "timeout", "cancelled", "rate_limited", "unknown_tool"]},
            },
            {
                "toolset": OPTIONAL,
                "request_id": OPTIONAL,
                "session_id": OPTIONAL,
                "client": OPTIONAL,
                "duration_ms": NUMBER,
                "input_bytes": COUNT,
                "output_bytes": COUNT,
                "error_code": OPTIONAL,
            },
        ),
    ),
)
