"""Requests of the Context Graph toolset that find goals in what is stored."""

from typing import Any

from streams.event_types import COUNT, FILLED, OPTIONAL, TEXTS, UNIT, array, obj
from streams.events import EventType, wire_type
from streams.topics import MEMORY

GOAL_BOOTSTRAPPED = wire_type("context.goal.bootstrapped")
SUBGOALS_DISCOVERED = wire_type("context.subgoals.discovered")
LEVELS = ["NorthStar", "Strategic", "Tactical", "Operational"]
MAX_MEMBERS = 2_000
"""A goal names this many of its memories at most."""
MAX_SUBGOALS = 20

_GOAL: dict[str, Any] = {
    "goal_text": FILLED,
    "medoid_id": FILLED,
    "member_ids": {**array(FILLED), "minItems": 1, "maxItems": MAX_MEMBERS},
    "confidence": {"type": "number", "minimum": 0, "maximum": 1},
    "coherence": {"type": "number", "minimum": 0, "maximum": 1},
}
_FOUND = {
    "confidence_threshold": UNIT,
    **dict.fromkeys(("fingerprints_analyzed", "clusters_found", "candidates_evaluated"), COUNT),
    "request_id": OPTIONAL,
}

EVENT_TYPES = (
    EventType(
        GOAL_BOOTSTRAPPED,
        MEMORY.name,
        "The North Star was asked for. `goal`: the candidate that the door found, absent where there is a North Star.",
        obj({}, {"goal": obj(_GOAL, {"dominant_embedders": TEXTS}), **_FOUND}),
    ),
    EventType(
        SUBGOALS_DISCOVERED,
        MEMORY.name,
        "Themes were found under a goal. `alignment`: of a theme with that goal; it becomes its parent from 0.5 on.",
        obj(
            {
                "parent_goal_id": FILLED,
                "goals": {
                    **array(
                        obj(
                            {
                                **_GOAL,
                                "level": {"enum": LEVELS[1:]},
                                "alignment": {"type": "number", "minimum": -1, "maximum": 1},
                            },
                            {"dominant_embedders": TEXTS},
                        )
                    ),
                    "maxItems": MAX_SUBGOALS,
                },
            },
            _FOUND,
        ),
    ),
)
