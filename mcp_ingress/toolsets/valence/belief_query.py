"""belief_query: find beliefs by meaning and words, the best of them by confidence and age as well."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import CHANGED, REPEATED, changed, repeated
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.valence import answers, common
from mcp_ingress.toolsets.valence.belief_queries import find_canonical
from mcp_ingress.toolsets.valence.belief_search import BeliefFilter, BeliefHit, prefetch, search_beliefs
from mcp_ingress.toolsets.valence.part import Valence
from processors.embedding.query import encoded_query
from processors.valence.rules.beliefs import KIND as BELIEF
from storage.search.query import pool_of


async def query_beliefs(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, search under the filters, and show the best in full."""
    query = writes.checked_text(arguments, "query")
    limit = common.checked_limit(arguments)
    linked_id = common.checked_id(arguments, "entity_id") if "entity_id" in arguments else None
    is_fresh = await call.fresh(vectors=True, also=["tensions"])
    entity_id = await _canonical(call, linked_id) if linked_id is not None else None
    domains = tuple(part.strip() for part in arguments.get("domain_filter") or () if part.strip())
    conditions = BeliefFilter(call.namespace, domains, entity_id, arguments["include_superseded"])
    indexes, follower, now = call.services.indexes, call.part(Valence).beliefs, call.clock.now()
    words = call.read(lambda cursor: prefetch(cursor, indexes, follower, query, conditions, pool_of(limit), now))
    prefetched, (vector, _, space) = await asyncio.gather(words, encoded_query(call.services.embedder, query))
    found, total = await call.read(
        lambda cursor: search_beliefs(cursor, indexes, prefetched, vector, limit, space=space)
    )
    fields: dict[str, Any] = {"beliefs": [_shown(match) for match in found], "total_count": total}
    if vector is None:
        fields |= {"degraded": True, "message": "No embedder answers: beliefs are found by their words only."}
    return common.read_answer(fields, is_fresh)


async def _canonical(call: Call, entity_id: str) -> str:
    """The entity that this one has become part of, or itself. Raises Refused when there is none."""
    found: str | None = await call.find(
        functools.partial(find_canonical, namespace=call.namespace, entity_id=entity_id)
    )
    if found is None:
        raise answers.not_found("ENTITY_NOT_FOUND", "entity", entity_id)
    return found


def _shown(match: BeliefHit) -> dict[str, Any]:
    parts = {name: round(part, 6) for name, part in match.parts.items()}
    repeats = repeated([(BELIEF, identity) for identity in match.also], match.times)
    changes = changed(match.earlier, match.disputed_by, match.tensions, match.superseded_by)
    return {**match.belief, "relevance_score": round(match.score, 6), "score_parts": parts, **repeats, **changes}


_BELIEFS = {
    "type": "array",
    "items": {**answers.BELIEF_SCHEMA, "properties": {**answers.BELIEF_SCHEMA["properties"], **REPEATED, **CHANGED}},
}

TOOL = Tool(
    name="belief_query",
    toolset="valence",
    title="Search beliefs",
    description="Search beliefs by content, domain, or entity. Ranked by meaning, confidence and recency.",
    kind="read",
    handler=query_beliefs,
    timeout_s=10.0,
    memory_operation="search_memory",
    truncation=Truncation(
        {"beliefs": answers.BELIEF_TEXTS},
        query="query",
        onward="{shown} beliefs fit: ask again for fewer, or narrow the search by `domain_filter` or `entity_id`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Natural language search query"},
            "domain_filter": {
                "type": "array",
                "items": {"type": "string"},
                "description": "Filter by domain path (e.g., ['tech', 'architecture'])",
            },
            "entity_id": {"type": "string", "description": "Filter by related entity UUID"},
            "include_superseded": {"type": "boolean", "default": False, "description": "Include superseded beliefs"},
            "limit": {"type": "integer", "default": 20, "description": "Maximum results"},
        },
        "required": ["query"],
    },
    output_schema=writes.output_schema({"beliefs": _BELIEFS, "total_count": common.TOTAL, **GAP_FIELDS}),
)
