"""What an operator did about dead letters. All under the system's namespace, so that they are in one order."""

from streams.event_types import FILLED, array, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED

LETTERS_REPLAYED = wire_type("dead_letter.replayed")
LETTERS_DROPPED = wire_type("dead_letter.dropped")

_OFFSET = {"type": "integer", "minimum": 0}

_PLACE = obj({"topic": FILLED, "partition": _OFFSET, "offset": _OFFSET})

EVENT_TYPES = (
    EventType(
        LETTERS_REPLAYED,
        DERIVED.name,
        "The original records of these letters were published again, at these positions.",
        obj({"letters": array(obj({"dead_letter_id": FILLED, "positions": array(_PLACE)}))}),
    ),
    EventType(
        LETTERS_DROPPED,
        DERIVED.name,
        "These letters are given up, and why; their bytes stay on the dead-letter topic.",
        obj({"dead_letter_ids": array(FILLED), "reason": FILLED}),
    ),
)
