"""memory://working-memory: what is at hand, last touched first."""

from __future__ import annotations

from typing import Any

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.resource import Items, Resource
from mcp_ingress.toolsets.cognitive_memory.queries import Conditions, select


async def read(call: Call, arguments: dict[str, Any]) -> Items:
    """All rows; a read touches none of them."""
    is_fresh = await call.fresh()
    columns = "SELECT id, content, importance, last_accessed, created_at FROM working_memory"
    order = 'ORDER BY last_accessed DESC, "offset" DESC, idx DESC'
    return await call.read(select(columns, Conditions(call.namespace), order)), is_fresh


RESOURCE = Resource(
    uri="memory://working-memory",
    toolset="cognitive_memory",
    title="Working memory",
    description="Access current Working Memory state (10 items max, LRU + importance)",
    parameters={},
    truncation=Truncation({"contents": {"content": "wm-{id}"}}),
    handler=read,
)
