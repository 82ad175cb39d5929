"""What a dream makes of memories' surroundings, and which questions it found asked again and again. Derived topic."""

from streams.event_types import FILLED, array, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED

SURROUNDINGS_EMBEDDED = wire_type("context.surroundings.embedded")
QUESTIONS_REPEATED = wire_type("context.questions.repeated")

EVENT_TYPES = (
    EventType(
        SURROUNDINGS_EMBEDDED,
        DERIVED.name,
        "A dream made vectors of memories together with what was said before and after them, in the space of a model. "
        "A vector is base64 of little-endian float32.",
        obj(
            {
                "dream_id": FILLED,
                "space": FILLED,
                "dim": {"type": "integer", "minimum": 1, "maximum": 8192},
                "surroundings": array(obj({"memory_id": FILLED, "vector": FILLED})),
            }
        ),
    ),
    EventType(
        QUESTIONS_REPEATED,
        DERIVED.name,
        "A dream found that these queries had been asked again and again: searches look further for their answers.",
        obj({"dream_id": FILLED, "query_vector_ids": array(FILLED)}),
    ),
)
