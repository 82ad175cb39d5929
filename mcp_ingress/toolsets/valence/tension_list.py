"""tension_list: what contradicts what."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import REPEATED
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_queries import TensionFilter, find_canonical
from mcp_ingress.toolsets.valence.belief_queries import list_tensions as list_rows
from processors.valence.rules.tensions import SEVERITIES, STATUSES


async def list_tensions(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Tensions that pass the filters, latest first, those between beliefs that state the same once.

    It waits until the detector has processed what the caller has written.
    """
    limit = common.checked_limit(arguments)
    linked_id = common.checked_id(arguments, "entity_id") if "entity_id" in arguments else None
    is_fresh = await call.fresh("tensions")
    entity_id = None
    if linked_id is not None:
        entity_id = await call.find(functools.partial(find_canonical, namespace=call.namespace, entity_id=linked_id))
        if entity_id is None:
            raise answers.not_found("ENTITY_NOT_FOUND", "entity", linked_id)
    conditions = TensionFilter(arguments.get("status"), arguments.get("severity"), entity_id)
    clusters = call.services.indexes.records.clusters
    query = functools.partial(
        list_rows, namespace=call.namespace, conditions=conditions, limit=limit, clusters=clusters
    )
    tensions, total = await call.read(query)
    return common.read_answer({"tensions": tensions, "total_count": total}, is_fresh)


_PROPERTIES = {**answers.TENSION_SCHEMA["properties"], **REPEATED}
_TENSIONS = {"type": "array", "items": {**answers.TENSION_SCHEMA, "properties": _PROPERTIES}}

TOOL = Tool(
    name="tension_list",
    toolset="valence",
    title="List tensions",
    description="List contradictions/tensions between beliefs. `severity` is the least that is listed.",
    kind="read",
    handler=list_tensions,
    memory_operation="search_memory",
    truncation=Truncation(
        {"tensions": answers.TENSION_TEXTS},
        onward="{shown} tensions fit: narrow the list by `status`, `severity` or `entity_id`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "status": {"type": "string", "enum": list(STATUSES), "description": "Filter by status"},
            "severity": {"type": "string", "enum": list(SEVERITIES), "description": "Minimum severity"},
            "entity_id": {"type": "string", "description": "Tensions involving this entity"},
            "limit": {"type": "integer", "default": 20, "description": "Maximum results"},
        },
    },
    output_schema=writes.output_schema({"tensions": _TENSIONS, "total_count": common.TOTAL}),
)
