"""Requests of the Context Graph toolset on the memory topic, and what its searches returned."""

from typing import Any

from streams.event_types import FILLED, NUMBER, OPTIONAL, TEXTS, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import INVOCATIONS, MEMORY

MEMORY_STORED = wire_type("context.memory.stored")
MEMORY_INJECTED = wire_type("context.memory.injected")
MEMORY_RECALLED = wire_type("context.memory.recalled")
MODALITIES = ["text", "code", "image", "audio", "structured", "mixed"]
MAX_RECALLED = 50
"""Results of a search that are told."""
MAX_CHAINS, MAX_CHAIN = 50, 8
"""Paths that a search tells, and memories on one of them."""
VIEWS = 13

_MEMORY: dict[str, Any] = {
    "modality": {"enum": [*MODALITIES, None]},
    "importance": UNIT,
    "tags": TEXTS,
    "session_id": OPTIONAL,
    "request_id": OPTIONAL,
}
_LEARNING = {
    **dict.fromkeys(("entropy", "coherence", "surprise", "learning_score"), UNIT),
    "emotional_weight": {**NUMBER, "minimum": 0},
}
"""What the door found; a producer that leaves it out states a memory of which no learning is known."""
_RECALLED = obj(
    {"memory_id": FILLED},
    {
        "similarity": NUMBER,
        "prior": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "alignments": {"type": ["array", "null"], "items": NUMBER, "minItems": VIEWS, "maxItems": VIEWS},
    },
)
_CHAINS: dict[str, Any] = {
    "type": ["array", "null"],
    "items": {**array(FILLED), "minItems": 3, "maxItems": MAX_CHAIN},
    "maxItems": MAX_CHAINS,
}
"""Paths over edges by which a returned memory was reached, from where each began: two hops at least."""

EVENT_TYPES = (
    EventType(
        MEMORY_STORED,
        MEMORY.name,
        "A memory was stored as it is.",
        obj({"content": FILLED}, {"rationale": OPTIONAL, **_MEMORY}),
    ),
    EventType(
        MEMORY_INJECTED,
        MEMORY.name,
        "A memory was stored, with what was learned by it.",
        obj({"content": FILLED, "rationale": FILLED}, {**_MEMORY, **_LEARNING}),
    ),
    EventType(
        MEMORY_RECALLED,
        INVOCATIONS.name,
        "A search returned memories: their ids, in order, how near each is to the query in each of 13 views (null "
        "where "
        "a view says nothing), how probably it is right before calibration (`prior`), and by which chains of edges it "
        "reached them. No text.",
        obj(
            {"query_vector_id": FILLED, "tool": FILLED, "results": {**array(_RECALLED), "maxItems": MAX_RECALLED}},
            {"session_id": OPTIONAL, "chains": _CHAINS},
        ),
    ),
)
