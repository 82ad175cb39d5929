"""entity_search: find entities by name or alias."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import REPEATED
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_queries import search_entities as find_entities
from processors.valence.rules.entities import TYPES


async def search_entities(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Entities that stand for themselves, exact names first."""
    query, limit = writes.checked_text(arguments, "query"), common.checked_limit(arguments)
    is_fresh = await call.fresh("tensions")
    search = functools.partial(
        find_entities, namespace=call.namespace, query=query, kind=arguments.get("type"), limit=limit
    )
    entities, total = await call.read(search)
    return common.read_answer({"entities": entities, "total_count": total}, is_fresh)


_ENTITY = {**answers.ENTITY_SCHEMA, "properties": {**answers.ENTITY_SCHEMA["properties"], **REPEATED}}

TOOL = Tool(
    name="entity_search",
    toolset="valence",
    title="Search entities",
    description="Find entities by name or type.",
    kind="read",
    handler=search_entities,
    memory_operation="search_memory",
    truncation=Truncation(
        {"entities": answers.ENTITY_TEXTS},
        onward="{shown} entities fit: ask again with a longer part of the name, or narrow the search by `type`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Search query (matches name and aliases)"},
            "type": {"type": "string", "enum": list(TYPES), "description": "Filter by entity type"},
            "limit": {"type": "integer", "default": 20, "description": "Maximum results"},
        },
        "required": ["query"],
    },
    output_schema=writes.output_schema({"entities": {"type": "array", "items": _ENTITY}, "total_count": common.TOTAL}),
)
