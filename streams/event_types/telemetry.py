"""What agents did: transcript lines, agents' own telemetry, OTLP. No memory is changed by these."""

from streams.event_types import COUNT, FILLED, FLAG, NUMBER, OPTIONAL, TIME, array, obj
from streams.events import EventType, wire_type
from streams.topics import TELEMETRY

SESSION_EVENT = wire_type("session.event")
OTEL_SPAN, OTEL_LOG, OTEL_METRIC = (wire_type(f"otel.{signal}") for signal in ("span", "log", "metric"))

_TOOL_CALL = obj(
    {"tool_call_id": FILLED, "tool_name": FILLED},
    {"started_at": TIME, "input": {}, "duration_ms": NUMBER, "is_error": FLAG, "error_type": OPTIONAL},
)
_TOOL_RESULT = obj(
    {"tool_call_id": FILLED},
    {
        "tool_name": FILLED,
        "input": {},
        "ended_at": TIME,
        "duration_ms": NUMBER,
        "is_error": FLAG,
        "error_type": OPTIONAL,
        "output_bytes": COUNT,
    },
)
_MODEL_CALL = obj(
    {"message_id": FILLED},
    {
        "model": OPTIONAL,
        "input_tokens": COUNT,
        "output_tokens": COUNT,
        "cache_read_tokens": COUNT,
        "cache_creation_tokens": COUNT,
        "cost_usd": NUMBER,
        "latency_ms": NUMBER,
    },
)
_SESSION = obj(
    {},
    {
        "parent_session_id": OPTIONAL,
        "source": OPTIONAL,
        "project": OPTIONAL,
        "agent": OPTIONAL,
        "model": OPTIONAL,
        "goal": OPTIONAL,
        "summary": OPTIONAL,
    },
)

_ATTRIBUTES = obj({"attributes": {"type": "object"}}, {"trace_id": OPTIONAL, "span_id": OPTIONAL, "timestamp": TIME})
TALOS_EVENTS = (
    "session.start",
    "session.end",
    "session.state_change",
    "session.tool_call",
    "gen_ai.request",
    "gen_ai.response",
    "knowledge.insight",
    "knowledge.observation",
    "knowledge.friction",
    "knowledge.pattern_detected",
    "knowledge.reflection",
    "knowledge.experience",
    "knowledge.decision",
    "reflection.triggered",
    "goal.created",
    "goal.status_change",
)

EVENT_TYPES = (
    EventType(
        SESSION_EVENT,
        TELEMETRY.name,
        "One line of an agent's session: a message, tool use, tool result, system notice.",
        obj(
            {"session_id": FILLED, "event_type": FILLED},
            {
                "parent_event_id": OPTIONAL,
                "role": OPTIONAL,
                "text": OPTIONAL,
                "payload": {},
                "session": _SESSION,
                "tool_calls": array(_TOOL_CALL),
                "tool_results": array(_TOOL_RESULT),
                "model_calls": array(_MODEL_CALL),
            },
        ),
    ),
    *(
        EventType(
            wire_type(name),
            TELEMETRY.name,
            f"The agent's own telemetry: {name}. Ids, counts and enums only.",
            _ATTRIBUTES,
        )
        for name in TALOS_EVENTS
    ),
    EventType(
        OTEL_SPAN,
        TELEMETRY.name,
        "An OpenTelemetry span.",
        obj(
            {"trace_id": FILLED, "span_id": FILLED, "name": FILLED},
            {
                "parent_span_id": OPTIONAL,
                "kind": OPTIONAL,
                "started_at": TIME,
                "ended_at": TIME,
                "duration_ms": NUMBER,
                "status": OPTIONAL,
                "status_message": OPTIONAL,
                "scope": OPTIONAL,
                "attributes": {"type": "object"},
                "resource": {"type": "object"},
                "events": {"type": "array"},
                "links": {"type": "array"},
            },
        ),
    ),
    EventType(
        OTEL_LOG,
        TELEMETRY.name,
        "An OpenTelemetry log record or event.",
        obj(
            {},
            {
                "trace_id": OPTIONAL,
                "span_id": OPTIONAL,
                "event_name": OPTIONAL,
                "severity": OPTIONAL,
                "body": {},
                "scope": OPTIONAL,
                "attributes": {"type": "object"},
                "resource": {"type": "object"},
            },
        ),
    ),
    EventType(
        OTEL_METRIC,
        TELEMETRY.name,
        "One data point of an OpenTelemetry metric.",
        obj(
            {"name": FILLED, "kind": FILLED},
            {
                "unit": OPTIONAL,
                "value": NUMBER,
                "count": COUNT,
                "sum": NUMBER,
                "started_at": TIME,
                "scope": OPTIONAL,
                "attributes": {"type": "object"},
                "resource": {"type": "object"},
                "point": {"type": "object"},
            },
        ),
    ),
)
