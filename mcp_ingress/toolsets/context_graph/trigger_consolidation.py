"""trigger_consolidation: memories that say the same become one, which stands for them."""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.consolidation import find_groups
from processors.context_graph.read.goal_alignments import GoalAlignments
from processors.context_graph.read.goals import Purposes
from processors.context_graph.rules.consolidation import MIN_SIMILARITY
from streams.errors import Refused
from streams.event_types.context_ends import STRATEGIES
from streams.topics import MEMORY

CODE = "consolidation_error"
COMPARED_S = 4.0
"""Of the five seconds that it may take this much goes into comparing."""
SHARE = 0.9
"""Of the bytes that an event may have, the groups'."""


async def consolidate(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Find what says the same, publish the merges, and answer which were decided."""
    is_fresh = await call.fresh(vectors=True)
    started = time.monotonic()
    found = await call.read(functools.partial(_found, call, arguments, started + COMPARED_S))
    event = writes.with_findings(writes.request(call, "context.memories.merged", arguments), found)
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    own = _answer(arguments, result or found, is_decided=result is not None)
    own["statistics"]["duration_ms"] = round((time.monotonic() - started) * 1000, 3)
    return writes.written(
        published, own | ({} if is_fresh else {"stale": True}), pending=result is None, problem=problem
    )


def _found(call: Call, arguments: Mapping[str, Any], until: float, cursor: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """Raises Refused for `semantic` without a goal."""
    services = call.services
    reader = reader_of(call, cursor)
    strategy, most, least = (arguments[name] for name in ("strategy", "max_memories", "min_similarity"))
    largest = int(services.log.largest(MEMORY.name) * SHARE)
    try:
        return find_groups(
            reader,
            call.part(Purposes),
            call.part(GoalAlignments),
            strategy,
            most,
            least,
            is_over=lambda: time.monotonic() > until,
            largest=largest,
        )
    except Refused as error:
        remedy = "Call `auto_bootstrap_north_star` first, or choose the strategy `similarity`."
        raise Refused(
            f"{error.message} {remedy}", code=CODE, reason=error.reason, field="strategy", remedy=remedy
        ) from None


def _answer(arguments: Mapping[str, Any], found: Mapping[str, Any], *, is_decided: bool) -> dict[str, Any]:
    """What was decided; until it is, only what was found."""
    processed, groups = found["processed"], found["groups"] if is_decided else None
    more = bool(found["is_partial"] or (is_decided and found["refused"]))
    status = None if groups is None else "completed" if groups else "nothing_to_do"
    return {
        "consolidation_result": {
            "status": status,
            "candidate_count": found["candidates"],
            "merged_groups": groups,
            "action_required": more,
        },
        "statistics": {
            "memories_processed": processed,
            "pairs_evaluated": processed * (processed - 1) // 2,
            "pairs_consolidated": found.get("pairs"),
            "memories_removed": found.get("removed"),
            "strategy": arguments["strategy"],
            "similarity_threshold": arguments["min_similarity"],
            "bytes_saved": found.get("bytes_saved"),
        },
        "merged": found.get("merged", []),
    }


_COUNT = {"type": "integer", "minimum": 0}
_DECIDED = {"type": ["integer", "null"], "minimum": 0}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}

TOOL = Tool(
    name="trigger_consolidation",
    toolset="context_graph",
    title="Merge what says the same",
    description=(
        "Trigger memory consolidation: memories that are near and say the same become "
        "one; what differs in a number, name, date, negation or owner stays apart. "
        "Nothing is deleted. `action_required` says to call again."
    ),
    kind="write",
    handler=consolidate,
    timeout_s=15.0,
    unavailable_code=CODE,
    memory_operation="update_memory",
    is_upkeep=True,
    input_schema={
        "type": "object",
        "properties": {
            "max_memories": {
                "type": "integer",
                "minimum": 1,
                "maximum": 10_000,
                "default": 100,
                "description": "Most memories, those stored last",
            },
            "strategy": {
                "type": "string",
                "enum": STRATEGIES,
                "default": "similarity",
                "description": "`temporal`: only of the last 24 hours; `semantic`: only near the North Star",
            },
            "min_similarity": {
                **_UNIT,
                "default": MIN_SIMILARITY,
                "description": "Least cosine of two memories",
            },
        },
    },
    output_schema=writes.output_schema(
        {
            "consolidation_result": {
                "type": "object",
                "properties": {
                    "status": {"type": ["string", "null"], "enum": ["completed", "nothing_to_do", None]},
                    "candidate_count": {**_COUNT, "description": "Pairs as near as `min_similarity`"},
                    "merged_groups": _DECIDED,
                    "action_required": {"type": "boolean", "description": "There is more to merge: call again"},
                },
            },
            "statistics": {
                "type": "object",
                "properties": {
                    "memories_processed": {**_COUNT, "description": "Those that have a vector"},
                    "pairs_evaluated": _COUNT,
                    "pairs_consolidated": {**_DECIDED, "description": "Pairs by which the merged groups hang together"},
                    "memories_removed": {**_DECIDED, "description": "How many fewer searches look through"},
                    "strategy": {"type": "string"},
                    "similarity_threshold": _UNIT,
                    "bytes_saved": {**_DECIDED, "description": "Of searched text; 0 where all texts differ"},
                    "duration_ms": {"type": "number", "minimum": 0},
                },
            },
            "merged": {
                "type": "array",
                "description": "At most 20",
                "items": {
                    "type": "object",
                    "properties": {
                        "memory_id": {"type": "string"},
                        "merged_from": {"type": "array", "items": {"type": "string"}},
                        "similarity": {
                            "type": ["number", "null"],
                            "description": "The lowest by which it hangs together",
                        },
                    },
                },
            },
        }
    ),
)
