"""What changes the state by which Context Graph searches: coupling, broadcast, modulators, a miss."""

from streams.event_types import FILLED, FLAG, NUMBER, OPTIONAL, UNIT, obj
from streams.events import EventType, wire_type
from streams.topics import MEMORY

COUPLING_ADJUSTED = wire_type("context.coupling.adjusted")
WORKSPACE_BROADCAST = wire_type("context.workspace.broadcast")
MODULATOR_ADJUSTED = wire_type("context.modulator.adjusted")
MEMORY_MISSED = wire_type("context.memory.missed")

_ASKED = {"session_id": OPTIONAL, "request_id": OPTIONAL}

EVENT_TYPES = (
    EventType(
        COUPLING_ADJUSTED,
        MEMORY.name,
        "The strength with which the views of Context Graph are coupled was set; it is kept inside 0 to 10.",
        obj({"coupling": {"type": "number"}}, _ASKED),
    ),
    EventType(
        WORKSPACE_BROADCAST,
        MEMORY.name,
        "A memory competes for the workspace. The order parameter and its threshold are those when it was asked for.",
        obj(
            {"memory_id": FILLED},
            {"importance": UNIT, "alignment": UNIT, "force": FLAG, "r": UNIT, "threshold": NUMBER, **_ASKED},
        ),
    ),
    EventType(
        MODULATOR_ADJUSTED,
        MEMORY.name,
        "A modulator of Context Graph was raised or lowered.",
        obj(
            {"modulator": {"enum": ["dopamine", "serotonin", "noradrenaline"]}, "delta": {"type": "number"}},
            _ASKED,
        ),
    ),
    EventType(
        MEMORY_MISSED,
        MEMORY.name,
        "A search of Context Graph left out all that it found as not similar enough; one in some seconds.",
        obj({"tool": FILLED, "query_vector_id": FILLED}, {"session_id": OPTIONAL}),
    ),
)
