"""belief_get: one belief in full, with its line and its open tensions when they are asked for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import CHANGED, changed
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_queries import TensionFilter, find_belief, find_line, list_tensions
from processors.memory.read.standing import read_successors
from processors.valence.rules.confidence import age_days, temporal_freshness
from streams.clock import parse_time


async def get_belief(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """The belief, how fresh it is today, and what was asked for besides."""
    belief_id = common.checked_id(arguments, "belief_id")
    is_fresh = await call.fresh("tensions")
    belief = await call.find(functools.partial(find_belief, namespace=call.namespace, belief_id=belief_id))
    if belief is None:
        raise answers.not_found("BELIEF_NOT_FOUND", "belief", belief_id)
    age = age_days(parse_time(belief["created_at"]), call.clock.now())
    freshness = {"temporal_freshness_now": temporal_freshness(belief["domain_path"], age)}
    fields: dict[str, Any] = {"belief": belief | freshness | await _superseded(call, belief)}
    if arguments["include_history"]:
        fields["history"] = await call.read(functools.partial(find_line, namespace=call.namespace, belief_id=belief_id))
    if arguments["include_tensions"]:
        conditions = TensionFilter(belief_id=belief_id, open_only=True)
        most = common.MAX_LIMIT
        clusters = call.services.indexes.records.clusters
        query = functools.partial(
            list_tensions, namespace=call.namespace, conditions=conditions, limit=most, clusters=clusters
        )
        fields["tensions"], _ = await call.read(query)
    return common.read_answer(fields, is_fresh)


async def _superseded(call: Call, belief: Mapping[str, Any]) -> dict[str, Any]:
    """What holds now in the place of a belief that was superseded, at the end of its line."""
    if belief["superseded_by_id"] is None:
        return {}
    documents, namespace = call.services.indexes.records.documents, call.namespace
    successors = await call.read(lambda cursor: read_successors(cursor, documents, namespace, [belief["id"]]))
    return changed((), (), superseded_by=successors.get(belief["id"]))


_STEP = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "content": {"type": "string"},
        "created_at": {"type": "string"},
        "valid_from": {"type": ["string", "null"]},
        "valid_until": {"type": ["string", "null"]},
        "reason": {"type": ["string", "null"]},
        "position": {"type": "integer", "minimum": 1},
        "is_current": {"type": "boolean"},
    },
}

_PROPERTIES = {**answers.BELIEF_SCHEMA["properties"], "superseded_by": CHANGED["superseded_by"]}
_BELIEF = {**answers.BELIEF_SCHEMA, "properties": _PROPERTIES}

TOOL = Tool(
    name="belief_get",
    toolset="valence",
    title="Look at a belief",
    description="Get a single belief by ID with full details.",
    kind="read",
    handler=get_belief,
    memory_operation="search_memory",
    truncation=Truncation(
        {"belief": answers.BELIEF_TEXTS, "history": answers.BELIEF_TEXTS, "tensions": answers.TENSION_TEXTS},
        onward="{shown} rows fit: ask without `include_history` or `include_tensions`; "
        "tension_list lists the tensions of an entity.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "belief_id": {"type": "string", "description": "UUID of the belief"},
            "include_history": {"type": "boolean", "default": False, "description": "Include supersession chain"},
            "include_tensions": {"type": "boolean", "default": False, "description": "Include related tensions"},
        },
        "required": ["belief_id"],
    },
    output_schema=writes.output_schema(
        {
            "belief": _BELIEF,
            "history": {"type": "array", "items": _STEP, "description": "The whole line, oldest first."},
            "tensions": answers.TENSIONS,
        }
    ),
)
