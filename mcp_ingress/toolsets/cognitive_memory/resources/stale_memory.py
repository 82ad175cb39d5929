"""memory://stale-memory: what left working memory, when and why."""

from __future__ import annotations

from typing import Any

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.resource import Items, Resource
from mcp_ingress.toolsets.cognitive_memory.queries import DAYS_BACK, Conditions, select, since


async def read(call: Call, arguments: dict[str, Any]) -> Items:
    """Newest first."""
    is_fresh = await call.fresh()
    chosen = Conditions(call.namespace).add("reason = ?", arguments.get("reason"))
    chosen.add("archived_at >= ?", since(call.clock.now(), arguments["days_back"])).add(
        "importance >= ?", arguments.get("importance_min")
    )
    columns = "SELECT id, original_content, importance, reason, archived_at FROM stale_memory"
    return await call.read(
        select(columns, chosen, 'ORDER BY archived_at DESC, "offset" DESC LIMIT ?', arguments["limit"])
    ), is_fresh


RESOURCE = Resource(
    uri="memory://stale-memory",
    toolset="cognitive_memory",
    title="Stale memory",
    description="Access archived Working Memory items (evicted items preserved for audit)",
    parameters={
        "reason": {
            "type": "string",
            "enum": ["LRU_EVICTION", "MANUAL_ARCHIVE"],
            "description": "Filter by archive reason",
        },
        "days_back": DAYS_BACK,
        "importance_min": {
            "type": "number",
            "minimum": 0.0,
            "maximum": 1.0,
            "description": "Minimum importance filter (0.0-1.0)",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": 1000,
            "default": 50,
            "description": "Maximum items to return",
        },
    },
    truncation=Truncation(
        {"contents": {"original_content": "stale-{id}"}},
        onward="{shown} items fit: narrow by `reason`, `days_back` or `importance_min`.",
    ),
    handler=read,
)
