"""entity_get: an entity, and the beliefs about it when they are asked for."""

from __future__ import annotations

import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_queries import find_canonical, find_entity, newest_beliefs


async def get_entity(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The entity under the id that stands for it; `resolved_from` says when another one was asked for."""
    requested_id = common.checked_id(arguments, "entity_id")
    limit = common.checked_limit(arguments, "belief_limit")
    is_fresh = await call.fresh("tensions")
    entity_id = await call.find(functools.partial(find_canonical, namespace=call.namespace, entity_id=requested_id))
    if entity_id is None:
        raise answers.not_found("ENTITY_NOT_FOUND", "entity", requested_id)
    fields: dict[str, Any] = {
        "entity": await call.read(functools.partial(find_entity, namespace=call.namespace, entity_id=entity_id))
    }
    if arguments["include_beliefs"]:
        query = functools.partial(newest_beliefs, namespace=call.namespace, entity_id=entity_id, limit=limit)
        fields["beliefs"] = await call.read(query)
    if entity_id != requested_id:
        fields["resolved_from"] = requested_id
    return common.read_answer(fields, is_fresh)


TOOL = Tool(
    name="entity_get",
    toolset="valence",
    title="Look at an entity",
    description="Get entity details with optional beliefs.",
    kind="read",
    handler=get_entity,
    memory_operation="search_memory",
    truncation=Truncation(
        {"entity": answers.ENTITY_TEXTS, "beliefs": answers.BELIEF_TEXTS},
        onward="{shown} beliefs fit: belief_query with this `entity_id` finds the others by what they say.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "entity_id": {"type": "string", "description": "UUID of the entity"},
            "include_beliefs": {"type": "boolean", "default": False, "description": "Include related beliefs"},
            "belief_limit": {"type": "integer", "default": 10, "description": "Max beliefs to include"},
        },
        "required": ["entity_id"],
    },
    output_schema=writes.output_schema(
        {"entity": answers.ENTITY_SCHEMA, "beliefs": answers.BELIEFS, "resolved_from": {"type": "string"}}
    ),
)
