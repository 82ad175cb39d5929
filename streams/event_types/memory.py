"""Vectors of every memory's texts, as the model made them; on the derived topic."""

from streams.event_types import FILLED, NUMBER, OPTIONAL, array, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED

EMBEDDED = wire_type("memory.embedded")
EMBEDDING_FAILED = wire_type("memory.embedding_failed")
CHANGE_FOUND = wire_type("memory.change_found")

_PASSAGE = obj(
    {
        "number": {"type": "integer", "minimum": 0},
        "start": {"type": "integer", "minimum": 0},
        "end": {"type": "integer", "minimum": 1},
    },
)
_OF_LONG = {
    "passages": {
        "type": "integer",
        "minimum": 1,
        "description": "Of a long text: how many of its passages have a vector, here or elsewhere.",
    },
    "passage": _PASSAGE
    | {
        "description": (
            "The vector is of this part of the text (characters from 0, `end` not included), not of the whole."
        )
    },
}

EVENT_TYPES = (
    EventType(
        EMBEDDED,
        DERIVED.name,
        "Vectors of a memory's texts and of the passages of long ones, with their token vectors, "
        "and the model that made them. "
        "What is too large for one event is several: a vector belongs to its record and passage, "
        "whichever event brings it.",
        obj(
            {
                "space": FILLED,
                "model_id": FILLED,
                "dim": {"type": "integer", "minimum": 1, "maximum": 8192},
                "trained": {"type": "boolean"},
                "vectors": array(
                    obj({"record_id": FILLED, "vector": FILLED}, {"tokens": FILLED, **_OF_LONG}),
                ),
            },
            {
                "tries": {
                    "type": "integer",
                    "minimum": 1,
                    "description": "How often the model was asked, when it did not answer at once.",
                },
                "of_turns": {
                    "type": "boolean",
                    "description": "The texts are turns of captured sessions, which are searched beside memories.",
                },
            },
        ),
    ),
    EventType(
        CHANGE_FOUND,
        DERIVED.name,
        "Earlier memories of which this one changes what they say, the nearest first.",
        obj(
            {"record_id": FILLED, "older": array(obj({"record_id": FILLED, "cosine": NUMBER}))},
            {"model_id": OPTIONAL},
        ),
    ),
    EventType(
        EMBEDDING_FAILED,
        DERIVED.name,
        "These texts get no vector of this model, or not for all of their passages: the model fails on them, "
        "or the log refuses the vectors.",
        obj({"space": FILLED, "record_ids": array(FILLED), "reason": FILLED}),
    ),
)
