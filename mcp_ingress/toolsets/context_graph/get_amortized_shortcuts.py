"""get_amortized_shortcuts: the paths that searches walk so often that a dream will shorten them."""

from __future__ import annotations

from datetime import UTC
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from processors.context_graph.read.dream_slices import read_shortcut_times, read_traversals
from processors.context_graph.read.edges import edges_among
from processors.context_graph.rules.shortcuts import (
    MIN_CONFIDENCE,
    MIN_HOPS,
    MIN_TRAVERSALS,
    SHORTCUT,
    Shortcut,
    candidates,
    trodden,
)
from storage.statements import execute

_MADE = """
SELECT count(*) FROM context_edge_changes c JOIN context_last_dreams d USING (namespace, dream_id)
WHERE c.namespace = ? AND c.kind = ? AND c.weight_before IS NULL AND NOT c.is_removed"""


async def get_amortized_shortcuts(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Count the walks of the searches until now, and show the paths that were walked most."""
    least, limit = float(arguments["min_confidence"]), arguments["limit"]
    left = await call.own_records()  # what a search has just walked counts
    await call.applied(call.read_token.merged(left), timeout_s=call.services.limits.read_wait_s)
    is_fresh = await call.fresh()
    found, made = await call.read(lambda cursor: _find(cursor, call, least))
    return {
        "success": True,
        "shortcuts": [_shown(one) for one in found[:limit]],
        "total_candidates": len(found),
        "returned_count": len(found[:limit]),
        "shortcuts_created_this_cycle": made,
        "filters_applied": {
            "min_confidence": least,
            "min_hops": MIN_HOPS,
            "min_traversals": MIN_TRAVERSALS,
            "limit": limit,
        },
        **({} if is_fresh else {"stale": True}),
    }


def _find(cursor: duckdb.DuckDBPyConnection, call: Call, least: float) -> tuple[list[Shortcut], int]:
    """The candidates, and how many shortcuts the last dream has made."""
    namespace = call.namespace
    walks = read_traversals(cursor, namespace, call.clock.now().astimezone(UTC).replace(tzinfo=None))
    made_at = read_shortcut_times(cursor, namespace)
    edges = edges_among(cursor, namespace, {one for path in trodden(walks, made_at) for one in path})
    found = candidates(walks, edges, least, made_at)
    row = execute(cursor, _MADE, [namespace, SHORTCUT]).fetchone()
    return found, 0 if row is None else row[0]


def _shown(one: Shortcut) -> dict[str, Any]:
    return {
        "source": one.path[0],
        "target": one.path[-1],
        "hop_count": one.hops,
        "traversal_count": one.traversals,
        "combined_weight": one.combined_weight,
        "min_confidence": one.min_confidence,
        "path": list(one.path),
        "path_length": len(one.path),
    }


_ID = {"type": "string"}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT = {"type": "integer", "minimum": 0}

TOOL = Tool(
    name="get_amortized_shortcuts",
    toolset="context_graph",
    title="Shortcut candidates",
    description="Get shortcut candidates: paths of 3+ hops that `search_graph` walked 5+ times. The next dream makes "
    "the edge, and the count of its path begins anew.",
    kind="read",
    handler=get_amortized_shortcuts,
    input_schema={
        "type": "object",
        "properties": {
            "min_confidence": {
                **_UNIT,
                "default": MIN_CONFIDENCE,
                "description": "Leave out paths with an edge that is less sure",
            },
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 20, "description": "Most shortcuts"},
        },
    },
    output_schema=writes.output_schema(
        {
            "shortcuts": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "source": _ID,
                        "target": _ID,
                        "hop_count": {"type": "integer", "minimum": MIN_HOPS},
                        "traversal_count": {"type": "integer", "minimum": MIN_TRAVERSALS},
                        "combined_weight": {**_UNIT, "description": "Product of the weights of its edges"},
                        "min_confidence": {**_UNIT, "description": "Of the least sure of its edges"},
                        "path": {"type": "array", "items": _ID},
                        "path_length": {"type": "integer", "description": "Memories on the path"},
                    },
                },
            },
            "total_candidates": _COUNT,
            "returned_count": _COUNT,
            "shortcuts_created_this_cycle": {**_COUNT, "description": "By the last dream"},
            "filters_applied": {
                "type": "object",
                "properties": {
                    "min_confidence": _UNIT,
                    "min_hops": _COUNT,
                    "min_traversals": _COUNT,
                    "limit": _COUNT,
                },
            },
        }
    ),
)
