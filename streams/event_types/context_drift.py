"""Drift of Context Graph: what a timer observed, and corrections of what searches return."""

from typing import Any

from streams.event_types import COUNT, FILLED, FLAG, OPTIONAL, TEXTS, obj
from streams.events import EventType, wire_type
from streams.topics import DERIVED, MEMORY

DRIFT_OBSERVED = wire_type("context.drift.observed")
DRIFT_CORRECTED = wire_type("context.drift.corrected")
VIEWS = 13
SEVERITIES = ["none", "mild", "moderate", "severe"]
TRENDS = ["improving", "stable", "worsening"]
STRATEGIES = ["none", "threshold_adjustment", "weight_rebalancing", "goal_reinforcement", "emergency_intervention"]
_ALIGNMENT: dict[str, Any] = {"type": "number", "minimum": -1, "maximum": 1}
_MAYBE_ALIGNMENT: dict[str, Any] = {**_ALIGNMENT, "type": ["number", "null"]}
_SHARE: dict[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}

EVENT_TYPES = (
    EventType(
        DRIFT_OBSERVED,
        DERIVED.name,
        "How far the last memories of a namespace had drifted from its goal at the end of an hour.",
        obj(
            {
                "goal_id": FILLED,
                "severity": {"enum": SEVERITIES},
                "trend": {"enum": TRENDS},
                "alignment": _ALIGNMENT,
                "baseline": _ALIGNMENT,
                "drift_score": {"type": "number", "minimum": 0},
                "rotation": {"type": "number", "minimum": 0, "maximum": 2},
                "samples": {"type": "integer", "minimum": 1},
                "memories": {"type": "integer", "minimum": 1},
            },
            {"most_drifted_embedders": TEXTS},
        ),
    ),
    EventType(
        DRIFT_CORRECTED,
        MEMORY.name,
        "What a search adds to the scores of its results from now on, so that they follow the goal again.",
        obj(
            {
                "goal_id": FILLED,
                "strategy": {"enum": STRATEGIES},
                "goal_weight": _SHARE,
                "view_weights": {"type": "array", "items": _SHARE, "minItems": VIEWS, "maxItems": VIEWS},
                "penalty": _SHARE,
            },
            {
                "threshold": _MAYBE_ALIGNMENT,
                "severity": {"enum": [*SEVERITIES, None]},
                "trend": {"enum": [*TRENDS, None]},
                "factor": {"type": ["number", "null"], "minimum": 0},
                "iterations": COUNT,
                "target_alignment": _MAYBE_ALIGNMENT,
                "alignment_before": _MAYBE_ALIGNMENT,
                "alignment_after": _MAYBE_ALIGNMENT,
                "forced": FLAG,
                "automatic": FLAG,
                "request_id": OPTIONAL,
            },
        ),
    ),
)
