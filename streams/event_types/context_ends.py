"""Ends of memories of Context Graph: several that say the same become one."""

from streams.event_types import COUNT, FILLED, FLAG, OPTIONAL, TEXTS, UNIT, array, obj
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
        "pairs": COUNT,
    },
)

EVENT_TYPES = (
    EventType(
        MEMORIES_MERGED,
        MEMORY.name,
        "Groups of memories that say the same became one memory each, of which `content` is the text. "
        "`similarity`: the lowest cosine by which a group holds together, `pairs`: how many pairs did. The sources "
        "stay, "
        "and are found no more. No groups: nothing was found among the memories that were `processed`.",
        obj(
            {"groups": array(_GROUP)},
            {
                "strategy": {"enum": [*STRATEGIES, None]},
                "similarity_threshold": UNIT,
                **dict.fromkeys(("processed", "candidates"), COUNT),
                "is_partial": FLAG,
                "request_id": OPTIONAL,
            },
        ),
    ),
)
