"""discover_sub_goals: the themes of the memories, each as a goal under another one."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.goal_answers import COUNT, GOAL_FIELDS, TEXT, UNIT, shown_goal
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.candidates import Background, Kernels, read_candidates, read_medoids, surest
from processors.context_graph.read.goals import Purposes, purpose_of, read_goal, read_goals_of
from processors.context_graph.read.teleology import mean_alignment, purpose_vectors
from processors.context_graph.rules.goals import (
    LEAST_MEMBERS,
    NORTH_STAR,
    PARENT_ALIGNMENT,
    Goal,
    level_of,
)
from streams.errors import Refused
from streams.event_types.context_goals import LEVELS, MAX_SUBGOALS

CODE = "subgoal_error"


class _Themes(NamedTuple):
    """What the door found before it published."""

    goals: list[dict[str, Any]]
    analysed: int
    clusters: int
    coherences: list[float]


async def discover(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for themes, publish those that are sure enough, and answer what was kept."""
    is_fresh = await call.fresh(vectors=True)
    parent = await _parent(call, arguments.get("parent_goal_id"))
    unrelated = await call.part(Background).rows(call.services.embedder)
    themes = await call.read(functools.partial(_themes, call, parent, unrelated, arguments))
    asked = {"parent_goal_id": parent.goal_id, "confidence_threshold": float(arguments["min_confidence"])}
    event = writes.request(call, "context.subgoals.discovered", asked | {"goals": []})
    event = writes.with_findings(event, {"goals": themes.goals, **_counts(themes)})
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    kept = (
        []
        if result is None
        else await call.read(functools.partial(read_goals_of, namespace=call.namespace, goal_ids=result["goal_ids"]))
    )
    own = _answer(themes, kept, parent, arguments) | ({} if is_fresh else {"stale": True})
    return writes.written(published, own, pending=result is None, problem=problem)


async def _parent(call: Call, goal_id: str | None) -> Goal:
    """The goal under which themes are looked for. Raises Refused."""
    find = call.part(Purposes).north_star if goal_id is None else functools.partial(read_goal, goal_id=goal_id)
    found = await call.read(functools.partial(find, namespace=call.namespace))
    if found is not None:
        return found
    if goal_id is None:
        remedy = "Call `auto_bootstrap_north_star` first."
        raise Refused(f"There is no North Star yet. {remedy}", code=CODE, reason="no_north_star", remedy=remedy)
    message = f"No goal has the id {goal_id[:80]!r}: `parent_goal_id` takes a `goal_id` of this toolset's answers."
    raise Refused(message, code=CODE, reason="not_found", field="parent_goal_id")


def _themes(
    call: Call,
    parent: Goal,
    unrelated: np.ndarray,
    arguments: Mapping[str, Any],
    cursor: duckdb.DuckDBPyConnection,
) -> _Themes:
    """The themes of all memories, or under another goal than the North Star those of its members. Raises Refused."""
    reader, purposes = reader_of(call, cursor), call.part(Purposes)
    members = None if parent.level == NORTH_STAR else parent.member_ids
    found = read_candidates(reader, call.part(Kernels), unrelated, members)
    if found.memories < LEAST_MEMBERS:
        remedy = f"Store at least {LEAST_MEMBERS} memories of it."
        message = f"Themes need {LEAST_MEMBERS} memories that have their vectors; there are {found.memories}. "
        raise Refused(message + remedy, code=CODE, reason="insufficient_data", remedy=remedy)
    towards = purpose_of(reader, purposes, parent)
    chosen = surest(found.clusters, arguments["min_confidence"])[: arguments["max_goals"]]
    aligned = [mean_alignment(row) for row in purpose_vectors(towards, [one.centre for one in chosen])]
    told = read_medoids(cursor, call.namespace, chosen)
    goals = [
        {
            **each,
            "level": level_of(one.share, len(found.clusters), one.coherence),
            "alignment": round(alignment, 6),
        }
        for each, one, alignment in zip(told, chosen, aligned, strict=True)
    ]
    return _Themes(goals, found.memories, len(found.clusters), [one.coherence for one in found.clusters])


def _counts(themes: _Themes) -> dict[str, int]:
    return {
        "fingerprints_analyzed": themes.analysed,
        "clusters_found": themes.clusters,
        "candidates_evaluated": len(themes.coherences),
    }


def _answer(themes: _Themes, kept: Sequence[Goal], parent: Goal, arguments: Mapping[str, Any]) -> dict[str, Any]:
    links = [
        {"parent_id": goal.parent_goal_id, "child_id": goal.goal_id, "alignment": goal.parent_alignment}
        for goal in kept
        if goal.parent_goal_id is not None
    ]
    mean = sum(themes.coherences) / len(themes.coherences) if themes.coherences else 0.0
    return {
        "discovered_goals": [_shown(goal) for goal in kept],
        "hierarchy_relationships": links,
        "cluster_analysis": {
            "clusters_found": themes.clusters,
            "clusters_evaluated": len(themes.coherences),
            "mean_coherence": round(mean, 6),
        },
        "discovery_metadata": {
            "memories_analyzed": themes.analysed,
            "parent_goal_id": parent.goal_id,
            "min_confidence": float(arguments["min_confidence"]),
        },
    }


def _shown(goal: Goal) -> dict[str, Any]:
    above = {} if goal.parent_goal_id is None else {"parent_goal_id": goal.parent_goal_id}
    return shown_goal(goal, "description") | above


TOOL = Tool(
    name="discover_sub_goals",
    toolset="context_graph",
    title="Find themes",
    description=(
        "Discover sub-goals from memory clusters: themes that could become goals, the "
        "surest first. With `parent_goal_id` of a theme its own memories are looked at."
    ),
    kind="write",
    handler=discover,
    timeout_s=30.0,
    unavailable_code=CODE,
    memory_operation="create_memory",
    is_upkeep=True,
    input_schema={
        "type": "object",
        "properties": {
            "min_confidence": {**UNIT, "default": 0.6, "description": "Minimum confidence"},
            "max_goals": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_SUBGOALS,
                "default": 5,
                "description": "Most sub-goals",
            },
            "parent_goal_id": {**TEXT, "description": "Parent goal; left out: the North Star"},
        },
    },
    output_schema=writes.output_schema(
        {
            "discovered_goals": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        **GOAL_FIELDS,
                        "description": TEXT,
                        "level": {"type": "string", "enum": LEVELS[1:], "description": "By its share of all memories"},
                        "parent_goal_id": TEXT,
                    },
                },
            },
            "hierarchy_relationships": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "parent_id": TEXT,
                        "child_id": TEXT,
                        "alignment": {"type": "number", "description": f"At least {PARENT_ALIGNMENT}"},
                    },
                },
            },
            "cluster_analysis": {
                "type": "object",
                "properties": {"clusters_found": COUNT, "clusters_evaluated": COUNT, "mean_coherence": UNIT},
            },
            "discovery_metadata": {
                "type": "object",
                "properties": {"memories_analyzed": COUNT, "parent_goal_id": TEXT, "min_confidence": UNIT},
            },
        }
    ),
)
