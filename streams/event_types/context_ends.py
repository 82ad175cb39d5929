"""Ends of memories of Context Graph: several that say the same become one."""

from streams.event_types import FILLED, OPTIONAL, TEXTS, UNIT, array, obj
from streams.event_types.context_graph import MODALITIES
from streams.events import EventType, wire_type
from streams.topics import MEMORY

MEMORIES_MERGED = wire_type("context.memories.merged")
STRATEGIES = ["similarity", "temporal", "semantic"]
_GROUP = obj(
    {"memory_id": FILLED, "content": FILLED, "merged_from": {**array(FILLED), "minItems": 2}},
    {
        "tags": TEXTS,
        "importance": UNIT,
        "modality": {"enum": [*MODALITIES, None]},
        "rationale": OPTIONAL,
        "similarity": UNIT,
    },
)

EVENT_TYPES = (
    EventType(
        MEMORIES_MERGED,
        MEMORY.name,
        "Groups of memories that say the same became one memory each, of which `content` is the text. "
        "`similarity`: the lowest cosine by which a group holds together. The sources stay, and are found no more.",
        obj(
            {"groups": {**array(_GROUP), "minItems": 1}},
            {"strategy": {"enum": [*STRATEGIES, None]}, "request_id": OPTIONAL},
        ),
    ),
)
