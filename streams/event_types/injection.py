"""What a client was given without asking."""

from streams.event_types import FILLED, NUMBER, OPTIONAL, array, obj
from streams.events import EventType, wire_type
from streams.topics import TELEMETRY

CONTEXT_INJECTED = wire_type("context.injected")

EVENT_TYPES = (
    EventType(
        CONTEXT_INJECTED,
        TELEMETRY.name,
        "What a client was given without asking: ids of records, never their texts, and what it cost in tokens.",
        obj(
            {
                "session_id": FILLED,
                "hook": FILLED,
                "records": array(obj({"record_id": FILLED}, {"score": NUMBER})),
                "tokens": {"type": "integer", "minimum": 0},
            },
            {"prompt_digest": OPTIONAL},
        ),
    ),
)
