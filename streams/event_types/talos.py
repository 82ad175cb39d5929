"""Requests of the Talos toolset, on the memory topic. Text travels here, never on the telemetry topic."""

from streams.event_types import FILLED, FLAG, OPTIONAL, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import MEMORY

CATEGORIES = ["insight", "observation", "friction", "reflection", "experience", "decision"]
FRICTION_CATEGORIES = ["tooling", "conceptual", "process", "environmental", "relational"]
_REQUEST = {"request_id": OPTIONAL}

EVENT_TYPES = (
    EventType(
        wire_type("talos.session.opened"),
        MEMORY.name,
        "A telemetry session was opened.",
        obj(
            {"session_id": FILLED, "goal": FILLED},
            {"persona": OPTIONAL, "protocol": OPTIONAL, "human": OPTIONAL, **_REQUEST},
        ),
    ),
    EventType(
        wire_type("talos.session.closed"),
        MEMORY.name,
        "A telemetry session was closed.",
        obj({"session_id": FILLED}, {"goal_achieved": FLAG, "summary": OPTIONAL, "skip_reflection": FLAG, **_REQUEST}),
    ),
    EventType(
        wire_type("talos.journal.written"),
        MEMORY.name,
        "A journal entry was written.",
        obj(
            {"content": FILLED, "category": {"enum": CATEGORIES}},
            {"session_id": OPTIONAL, "domain": OPTIONAL, "confidence": UNIT, **_REQUEST},
        ),
    ),
    EventType(
        wire_type("talos.friction.logged"),
        MEMORY.name,
        "A friction was logged.",
        obj(
            {"description": FILLED, "category": {"enum": FRICTION_CATEGORIES}},
            {"session_id": OPTIONAL, "blocking": FLAG, **_REQUEST},
        ),
    ),
    EventType(
        wire_type("talos.reflection.written"),
        MEMORY.name,
        "A reflection was written.",
        obj({"content": FILLED}, {"trigger": OPTIONAL, "session_id": OPTIONAL, **_REQUEST}),
    ),
    EventType(
        wire_type("talos.knowledge.imported"),
        MEMORY.name,
        "An operator's knowledge: sutras, protocols, personas, limitations, capabilities, and how they are related.",
        obj(
            {
                "entities": array(
                    obj({"label": FILLED, "text": FILLED}, {"properties": {"type": "object"}, "confidence": UNIT})
                )
            },
            {
                "relations": array(
                    obj({"type": FILLED, "from": FILLED, "to": FILLED}, {"properties": {"type": "object"}})
                ),
                **_REQUEST,
            },
        ),
    ),
)
