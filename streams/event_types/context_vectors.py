"""Requests of the Context Graph toolset about vectors, the synergy of views, and profiles."""

from typing import Any

from streams.event_types import FILLED, FLAG, OPTIONAL, UNIT, obj
from streams.events import EventType, wire_type
from streams.topics import MEMORY

VECTOR_COMPUTED = wire_type("context.vector.computed")
VECTOR_FUSED = wire_type("context.vector.fused")
SYNERGY_UPDATED = wire_type("context.synergy.updated")
PROFILE_CHANGED = wire_type("context.profile.changed")
VIEWS, PAIRS, GROUPS, COMMON_DIM = 13, 78, 6, 256
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}


def _numbers(count: int, item: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "array", "items": item or {"type": "number"}, "minItems": count, "maxItems": count}


def _maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return {**schema, "type": [schema["type"], "null"]}


EVENT_TYPES = (
    EventType(
        VECTOR_COMPUTED,
        MEMORY.name,
        "A teleological vector of a text was computed: purpose vector, cross-correlations, group alignments.",
        obj(
            {
                "content": FILLED,
                "purpose_vector": _numbers(VIEWS),
                "cross_correlations": _numbers(PAIRS),
                "group_alignments": _numbers(GROUPS),
            },
            {"confidence": UNIT, "provisional": FLAG, "profile_id": OPTIONAL, "request_id": OPTIONAL},
        ),
    ),
    EventType(
        VECTOR_FUSED,
        MEMORY.name,
        "The views of a memory were fused to one vector.",
        obj(
            {
                "memory_id": FILLED,
                "fusion_method": FILLED,
                "vector": _numbers(COMMON_DIM),
                "weights": _numbers(VIEWS, _SHARE),
            },
            {"confidence": UNIT, "profile_id": OPTIONAL, "request_id": OPTIONAL},
        ),
    ),
    EventType(
        SYNERGY_UPDATED,
        MEMORY.name,
        "A result of a search was judged. `alignments`: of query and result in the thirteen views, null where a view "
        "said nothing; `similarity` and `prior`: as the search said them.",
        obj(
            {
                "query_vector_id": FILLED,
                "result_vector_id": FILLED,
                "score": _SHARE,
                "alignments": _numbers(VIEWS, {"type": ["number", "null"], "minimum": -1, "maximum": 1}),
            },
            {
                "feedback": OPTIONAL,
                "similarity": {"type": ["number", "null"]},
                "prior": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
                "learning_rate": {"type": ["number", "null"], "minimum": 0.001, "maximum": 0.5},
                "update_scope": {"enum": ["all_pairs", "high_synergy_only", "contributing_pairs", None]},
                "request_id": OPTIONAL,
            },
        ),
    ),
    EventType(
        PROFILE_CHANGED,
        MEMORY.name,
        "A profile was created, updated or deleted.",
        obj(
            {"action": {"enum": ["create", "update", "delete"]}, "profile_id": FILLED},
            {
                "name": OPTIONAL,
                "task_type": OPTIONAL,
                "embedder_weights": _maybe(_numbers(VIEWS, {"type": "number", "minimum": 0})),
                "group_priorities": {"type": ["object", "null"], "additionalProperties": {"type": "number"}},
                "fusion_strategy": OPTIONAL,
                "request_id": OPTIONAL,
            },
        ),
    ),
)
