"""get_pruning_candidates: which memories could go, and why. It deletes nothing."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.goal_alignments import GoalAlignments
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.pruning import read_standings
from processors.context_graph.rules.pruning import REASONS, Reason, Standing, is_fresh, priority_of, reason_of

DIGITS = 6
ALIGNED_S, COMPARED_S = 0.4, 3.0
"""So long it computes alignments that it does not know yet, and so long it looks for what says the same."""
_NOT_ALL_COMPARED = (
    "There was no time to compare all memories with each other: of those stored longest ago `redundant` is not known."
)


async def find_candidates(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Read how all memories stand, and answer those for which a reason holds, by priority."""
    left = await call.own_records()  # what was just recalled is not stale
    await call.applied(left, timeout_s=call.services.limits.read_wait_s)
    is_fresh = await call.fresh(vectors=True)
    memories, notes = await call.read(functools.partial(_standings, call, arguments["min_staleness_days"]))
    found = [
        (reason, memory)
        for memory in memories
        if (reason := reason_of(memory, arguments["min_staleness_days"], arguments["min_alignment"])) is not None
    ]
    found.sort(key=lambda one: (-priority_of(one[1]), one[1].memory_id))
    shown = [_shown(reason, memory) for reason, memory in found[: arguments["limit"]]]
    summary = _summary(len(memories), found)
    return {"success": True, "candidates": shown, "summary": summary, **notes, **({} if is_fresh else {"stale": True})}


def _standings(
    call: Call, staleness_days: float, cursor: duckdb.DuckDBPyConnection
) -> tuple[list[Standing], dict[str, Any]]:
    """How all memories stand, and what is not known yet. The alignment of a fresh one decides nothing."""
    started = time.monotonic()
    reader = reader_of(call, cursor)
    goal = call.part(Purposes).north_star(cursor, call.namespace)
    now = call.clock.now().replace(tzinfo=None)
    standings, is_complete = read_standings(reader, now, lambda: time.monotonic() > started + COMPARED_S)
    notes: dict[str, Any] = {} if is_complete else {"degraded": True, "message": _NOT_ALL_COMPARED}
    if goal is None:
        return standings, notes
    ids = [memory.memory_id for memory in standings if not is_fresh(memory, staleness_days)]
    known = call.part(GoalAlignments).of(reader, call.part(Purposes), goal, ids, time.monotonic() + ALIGNED_S)
    if len(known) < len(ids):
        notes["recomputing"] = len(ids) - len(known)
    return [
        memory.aligned(known[memory.memory_id]) if memory.memory_id in known else memory for memory in standings
    ], notes


def _shown(reason: Reason, memory: Standing) -> dict[str, Any]:
    alignment = {} if memory.alignment is None else {"alignment": round(memory.alignment, DIGITS)}
    other = {} if memory.redundant_with is None else {"redundant_with": memory.redundant_with}
    return {
        "memory_id": memory.memory_id,
        "reason": reason,
        "age_days": round(memory.age_days, DIGITS),
        "connections": memory.connections,
        "byte_size": memory.byte_size,
        "priority_score": round(priority_of(memory), DIGITS),
        "protected_by_edges": memory.is_protected,
        **alignment,
        **other,
    }


def _summary(total: int, found: Sequence[tuple[Reason, Standing]]) -> Mapping[str, Any]:
    counted = Counter(reason for reason, _ in found)
    return {
        "total_memories": total,
        "total_candidates": len(found),
        "by_reason": {reason: counted[reason] for reason in REASONS},
        "reclaimable_bytes": sum(memory.byte_size for _, memory in found),
    }


_COUNT = {"type": "integer", "minimum": 0}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}

TOOL = Tool(
    name="get_pruning_candidates",
    toolset="context_graph",
    title="What could go",
    description=(
        "Identify memories that are candidates for pruning based on staleness, low "
        "alignment, redundancy, or orphaned status. Nothing is deleted. "
        "`trigger_consolidation` can merge what is `redundant`."
    ),
    kind="read",
    handler=find_candidates,
    timeout_s=15.0,
    unavailable_code="pruning_error",
    input_schema={
        "type": "object",
        "properties": {
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 1000,
                "default": 20,
                "description": "Maximum candidates to return",
            },
            "min_staleness_days": {
                "type": "integer",
                "minimum": 0,
                "maximum": 36_500,
                "default": 30,
                "description": "Minimum age in days; `stale` was not used that long either",
            },
            "min_alignment": {
                **_UNIT,
                "default": 0.4,
                "description": "Memories below this alignment are candidates",
            },
        },
    },
    output_schema=writes.output_schema(
        {
            "candidates": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "memory_id": {"type": "string"},
                        "reason": {"type": "string", "enum": list(REASONS)},
                        "age_days": {"type": "number", "minimum": 0},
                        "alignment": {"type": "number", "minimum": -1, "maximum": 1, "description": "With the goal"},
                        "connections": {**_COUNT, "description": "Edges to other memories"},
                        "byte_size": {**_COUNT, "description": "Of its text"},
                        "priority_score": {**_UNIT, "description": "Higher could go sooner"},
                        "redundant_with": {"type": "string", "description": "The memory that says the same"},
                        "protected_by_edges": {
                            "type": "boolean",
                            "description": "Three edges or more halve its priority",
                        },
                    },
                    "required": ["memory_id", "reason", "age_days", "connections", "byte_size", "priority_score"],
                },
            },
            "summary": {
                "type": "object",
                "properties": {
                    "total_memories": _COUNT,
                    "total_candidates": _COUNT,
                    "by_reason": {"type": "object", "properties": dict.fromkeys(REASONS, _COUNT)},
                    "reclaimable_bytes": {**_COUNT, "description": "Of the texts of all candidates"},
                },
            },
            "recomputing": {**_COUNT, "description": "Memories whose alignment is not known yet: call again"},
        }
    ),
)
