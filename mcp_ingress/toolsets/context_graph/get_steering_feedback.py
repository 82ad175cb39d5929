"""get_steering_feedback: how well the memory is kept, and what would raise it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.pulse import read_means
from mcp_ingress.toolsets.context_graph.session_state import read_state
from processors.context_graph.read.steering import CountedFollower, read_facts
from processors.context_graph.rules.steering import (
    HEALTHY,
    TARGET_ACCURACY,
    Facts,
    Reward,
    health,
    recommendations,
    trend,
)

DIGITS = 12
"""A score is shown without what binary fractions add: 0.4 and not 0.3999999999999999."""


async def get_steering_feedback(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The reward, what it is made of, and what to do first."""
    means = await read_means(call.services, call.namespace)
    counted, learning = call.part(CountedFollower), means.learning_score
    facts, notes = await read_state(call, lambda cursor: read_facts(cursor, counted, call.namespace, learning))
    reward, advised = Reward.of(facts), recommendations(facts)
    return {
        "success": True,
        "reward": {
            "value": round(reward.value, DIGITS),
            **{f"{name}_score": round(score, DIGITS) for name, score in reward.by_name.items()},
            "dominant_factor": reward.dominant,
            "limiting_factor": reward.limiting,
        },
        **_details(facts, advised),
        "recommendations": advised,
        "summary": _summary(facts, reward),
        "needs_immediate_attention": reward.needs_attention,
        "priority_improvement": advised[0]["action"] if advised else "none",
        "insufficient_data": facts.memories == 0,
        **notes,
    }


def _details(facts: Facts, advised: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    curated = [each["description"] for each in advised if each["action"] == "trigger_consolidation"]
    return {
        "gardener_details": {
            "connectivity": facts.connectivity,
            "edges_pruned": facts.edges_pruned,
            "dead_ends_removed": facts.merged,
            "orphan_count": facts.orphans,
            "is_healthy": facts.connectivity > HEALTHY,
            "health": health(facts.connectivity),
        },
        "curator_details": {
            "avg_quality": facts.average_quality,
            "low_quality_count": facts.low_quality,
            "duplicate_count": facts.duplicates,
            "recommendations": curated,
        },
        "assessor_details": {
            "retrieval_accuracy": facts.accuracy,
            "target_accuracy": TARGET_ACCURACY,
            "learning_efficiency": facts.learning,
            "trend": trend(facts.learning, facts.recent_learning),
            "feedback_count": facts.judged,
        },
    }


def _summary(facts: Facts, reward: Reward) -> str:
    if not facts.memories:
        return "There is no memory yet."
    return (
        f"{facts.connected} of {facts.memories} memories are connected, {facts.duplicates} repeat another one, "
        f"{facts.relevant} of {facts.judged} judged results were relevant; the {reward.limiting} limits the reward."
    )


_OBJECT = {"type": "object"}
_SCORE = {"type": "number", "minimum": -1, "maximum": 1}

TOOL = Tool(
    name="get_steering_feedback",
    toolset="context_graph",
    title="Steering",
    description="Get steering feedback: one reward in [-1, 1] of the Gardener (edges), the Curator (quality, "
    "duplicates) and the Assessor (judged results, learning), with counts and the tool that would raise it first.",
    kind="read",
    handler=get_steering_feedback,
    input_schema={"type": "object", "properties": {}},
    output_schema=writes.output_schema(
        {
            "reward": {
                "type": "object",
                "properties": {"value": _SCORE, "gardener_score": _SCORE, "curator_score": _SCORE},
            },
            **dict.fromkeys(("gardener_details", "curator_details", "assessor_details"), _OBJECT),
            "recommendations": {"type": "array", "items": {"type": "object"}},
            "summary": {"type": "string"},
            "needs_immediate_attention": {"type": "boolean"},
            "priority_improvement": {"type": "string", "description": "A tool's name, or none"},
            "insufficient_data": {"type": "boolean"},
        }
    ),
)
