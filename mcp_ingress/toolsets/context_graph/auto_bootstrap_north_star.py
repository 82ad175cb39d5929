"""auto_bootstrap_north_star: find in the memories what they are about, and keep it as the North Star."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, NamedTuple

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.goal_answers import (
    ALGORITHM,
    COUNT,
    GOAL_FIELDS,
    TEXT,
    UNIT,
    shown_goal,
)
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.candidates import (
    Background,
    Kernels,
    best_of,
    read_candidates,
    read_medoids,
)
from processors.context_graph.read.goals import read_north_star
from processors.context_graph.rules.goals import LEAST_MEMBERS, NORTH_STAR, Goal, north_star_id, passing_threshold
from streams.errors import Refused

CODE = "bootstrap_error"
SERVICES = ("drift_detector", "pruning_service", "consolidation_service", "subgoal_discovery")
"""What a North Star initialises."""


class _Bootstrap(NamedTuple):
    """What the door found before it published. `goal`: None where there is a North Star already."""

    goal: dict[str, Any] | None
    counts: dict[str, int]


async def bootstrap(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Look for candidates unless there is a North Star, publish the best, and answer what was decided."""
    threshold = float(arguments["confidence_threshold"])
    is_fresh = await call.fresh(vectors=True)
    known = await call.read(functools.partial(read_north_star, namespace=call.namespace))
    found = await _candidate(call, known, threshold, arguments["max_candidates"])
    event = writes.request(call, "context.goal.bootstrapped", {"confidence_threshold": threshold})
    event = writes.with_findings(event, {"goal": found.goal, **found.counts})
    published = await writes.publish(call, event)
    result, goal, problem = await writes.decision_and_state(
        call, published, functools.partial(read_north_star, namespace=call.namespace), [], event_id=event.id
    )
    own = _answer(call.namespace, found, result, goal)
    return writes.written(
        published, own | ({} if is_fresh else {"stale": True}), pending=result is None, problem=problem
    )


async def _candidate(call: Call, known: Goal | None, threshold: float, most: int) -> _Bootstrap:
    """Raises Refused where no candidate reaches the threshold."""
    if known is not None and not known.is_provisional:
        return _Bootstrap(
            None, {"fingerprints_analyzed": len(known.member_ids), "clusters_found": 0, "candidates_evaluated": 0}
        )
    unrelated = await call.part(Background).rows(call.services.embedder)
    found, best = await call.read(functools.partial(_evaluated, call, unrelated, threshold, most))
    if found.goal is None and known is None:
        raise _insufficient(best, found.counts["fingerprints_analyzed"])
    return found


def _evaluated(
    call: Call, unrelated: np.ndarray, threshold: float, most: int, cursor: duckdb.DuckDBPyConnection
) -> tuple[_Bootstrap, float]:
    """What was found, and the confidence of the best candidate."""
    reader = reader_of(call, cursor)
    found = read_candidates(reader, call.part(Kernels), unrelated)
    candidates = [one for one in (found.whole, *found.clusters) if one is not None][:most]
    best = best_of(candidates, threshold)
    counts = {
        "fingerprints_analyzed": found.memories,
        "clusters_found": len(found.clusters),
        "candidates_evaluated": len(candidates),
    }
    goals = [] if best is None else read_medoids(cursor, call.namespace, [best])
    return _Bootstrap(goals[0] if goals else None, counts), max((one.confidence for one in candidates), default=0.0)


def _insufficient(best: float, analysed: int) -> Refused:
    if analysed == 0:
        message = "No memory has its vector yet, so that no purpose can be found"
        remedy = "Store some memories with `store_memory` and call again: one is enough for the default threshold."
    else:
        passing = passing_threshold(best)
        message = f"The {analysed} memories are not of one matter: the best candidate has a confidence of {best:.2f}"
        remedy = (
            f"Store more memories of what this namespace is for, or call with `confidence_threshold` {passing:g}, "
            "which it reaches."
        )
    return Refused(
        f"{message}. {remedy}",
        code=CODE,
        reason="insufficient_data",
        remedy=remedy,
        best_confidence=round(best, 6),
    )


def _answer(namespace: str, found: _Bootstrap, result: Mapping[str, Any] | None, goal: Goal | None) -> dict[str, Any]:
    """The stored goal; until it is stored, what was asked to become it."""
    decided = result or {}
    told: dict[str, Any] = {"goal_id": north_star_id(namespace), "level": NORTH_STAR}
    if goal is not None:
        told |= shown_goal(goal) | {"strong": goal.is_strong, "provisional": goal.is_provisional}
    elif found.goal is not None:
        told |= {"goal_text": found.goal["goal_text"], "confidence": found.goal["confidence"]}
    discovered = int(decided.get("source") == "discovered" or bool(decided.get("is_renewed")))
    return {
        "bootstrap_result": told | {"source": decided.get("source")},
        "discovery_metadata": {**found.counts, "goals_discovered": discovered, "algorithm": ALGORITHM},
        "initialized_services": [] if result is None else list(SERVICES),
        "recommendations": [] if goal is None else _recommendations(goal),
        "status": decided.get("status"),
    }


def _recommendations(goal: Goal) -> list[str]:
    later = "Call `get_alignment_drift` when more has been stored: it says whether work has left this matter."
    if goal.is_provisional:
        count = len(goal.member_ids)
        return [
            f"The goal stands on {count} {'memory' if count == 1 else 'memories'}: store {LEAST_MEMBERS - count} more "
            "and call `auto_bootstrap_north_star` again, which then takes all of them in.",
            later,
        ]
    return ["Call `discover_sub_goals` to find the themes within it.", later]


TOOL = Tool(
    name="auto_bootstrap_north_star",
    toolset="context_graph",
    title="Find the purpose",
    description=(
        "Bootstrap the autonomous North Star system: what the memories are about becomes "
        "the goal that searches, drift and hygiene are held against. A second call "
        "answers the same goal. An error -32110 says the best confidence there was."
    ),
    kind="write",
    handler=bootstrap,
    timeout_s=30.0,
    unavailable_code=CODE,
    memory_operation="create_memory",
    is_upkeep=True,
    input_schema={
        "type": "object",
        "properties": {
            "confidence_threshold": {
                **UNIT,
                "default": 0.7,
                "description": "Minimum confidence; 0.7 means of one matter",
            },
            "max_candidates": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 10,
                "description": "Most groups evaluated, largest first",
            },
        },
    },
    output_schema=writes.output_schema(
        {
            "bootstrap_result": {
                "type": "object",
                "properties": {
                    **GOAL_FIELDS,
                    "goal_text": TEXT,
                    "source": {"type": ["string", "null"], "enum": ["discovered", "existing", None]},
                    "strong": {"type": "boolean", "description": "At least 50 memories, and a coherence of 0.85"},
                    "provisional": {"type": "boolean", "description": "It stands on fewer than three memories"},
                },
            },
            "discovery_metadata": {
                "type": "object",
                "properties": {
                    "fingerprints_analyzed": COUNT,
                    "clusters_found": COUNT,
                    "candidates_evaluated": COUNT,
                    "goals_discovered": COUNT,
                    "algorithm": TEXT,
                },
            },
            "initialized_services": {"type": "array", "items": {"type": "string", "enum": list(SERVICES)}},
            "recommendations": {"type": "array", "items": TEXT},
            "status": {"type": ["string", "null"], "enum": ["bootstrapped", "reinitialized", None]},
        }
    ),
)
