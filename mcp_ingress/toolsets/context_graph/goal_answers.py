"""What the goal tools share: how a goal is shown, and the reader of what it is made of."""

from __future__ import annotations

from typing import Any

from processors.context_graph.rules.goals import Goal
from streams.event_types.context_goals import LEVELS

ALGORITHM = "kmeans-13"
"""Clusters by the sentence vector; all thirteen views tell which are dominant."""
TEXT = {"type": "string"}
COUNT = {"type": "integer", "minimum": 0}
UNIT = {"type": "number", "minimum": 0, "maximum": 1}
GOAL_FIELDS: dict[str, Any] = {
    "goal_id": TEXT,
    "level": {"type": "string", "enum": LEVELS},
    "confidence": {**UNIT, "description": "0.4 coherence, 0.3 size, 0.3 share of dominant views"},
    "coherence_score": {**UNIT, "description": "0: as near as unrelated sentences are; 1: nearer than all of these"},
    "member_count": COUNT,
    "dominant_embedders": {"type": "array", "items": TEXT},
}


def shown_goal(goal: Goal, text_field: str = "goal_text") -> dict[str, Any]:
    """A goal as the tools answer it."""
    return {
        "goal_id": goal.goal_id,
        text_field: goal.text,
        "level": goal.level,
        "confidence": goal.confidence,
        "coherence_score": goal.coherence,
        "dominant_embedders": list(goal.dominant_views),
        "member_count": len(goal.member_ids),
    }
