"""Which spaces of vectors there are, and which one answers.

All are under the system's namespace, so that they are in one order.
"""

from streams.event_types import FILLED, TEXT, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED

SYSTEM = "thalweg"
"""The namespace of what belongs to the store and to nobody's memory."""
SPACE_REGISTERED = wire_type("space.registered")
SPACE_SWITCHED = wire_type("space.switched")
SPACE_DROPPED = wire_type("space.dropped")

EVENT_TYPES = (
    EventType(
        SPACE_REGISTERED,
        DERIVED.name,
        "A space of vectors is to be built: the model, and how its vectors are made.",
        obj(
            {
                "space": FILLED,
                "embedder": FILLED,
                "model_id": FILLED,
                "revision": TEXT,
                "dim": {"type": "integer", "minimum": 1, "maximum": 8192},
                "dtype": FILLED,
                "max_tokens": {"type": "integer", "minimum": 0},
                "pooling": FILLED,
                "query_prefix": TEXT,
                "document_prefix": TEXT,
                "provider": FILLED,
                "trained": {"type": "boolean"},
            }
        ),
    ),
    EventType(
        SPACE_SWITCHED, DERIVED.name, "From here on this space answers; the one before is kept.", obj({"space": FILLED})
    ),
    EventType(
        SPACE_DROPPED,
        DERIVED.name,
        "A space that does not answer is given up; its vectors are deleted.",
        obj({"space": FILLED}),
    ),
)
