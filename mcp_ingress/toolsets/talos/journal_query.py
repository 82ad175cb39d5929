"""journal_query: find entries and what was extracted from them, by meaning, words and neighbourhood."""

from __future__ import annotations

import functools
from datetime import UTC
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import CHANGED, REPEATED, changed, repeated
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.talos import answers
from mcp_ingress.toolsets.talos.queries import find_related
from mcp_ingress.toolsets.talos.search_arguments import ENTITY_TYPES, checked_limit, search_filter
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.hits import SearchHit
from storage.search.search import Keywords, ranked
from streams.clock import format_time

MAX_SESSIONS = 10
"""The ten rows of an answer are of some five."""


async def query_journal(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, search, and add the neighbours of what was found."""
    query = writes.checked_text(arguments, "query", code="empty_query")
    limit = checked_limit(arguments.get("limit", 10))
    chosen = search_filter(call.namespace, arguments)
    is_fresh = await call.fresh("extract", vectors=True)
    run = functools.partial(_found, call)
    found, degraded = await call.search(query, chosen, limit, run)
    return {"success": True, **found, **_notes(is_fresh, degraded)}


def _found(
    call: Call, cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: Keywords | None
) -> tuple[dict[str, Any], str | None]:
    """What the answer shows of a search, and what this lacks: one turn on a reader thread."""
    found = ranked(cursor, indexes, query, prefetched)
    hits = found.read(query.limit)
    related = find_related(cursor, indexes, call.namespace, hits, call.services.may_hold)
    sessions = found.sessions(hits, MAX_SESSIONS)
    shown = {
        "results": [_shown(hit) | {"related": related[hit.record_id]} for hit in hits],
        "total_found": found.total,
        **({"sessions": sessions} if sessions else {}),
    }
    return shown, found.degraded


def _shown(hit: SearchHit) -> dict[str, Any]:
    passage = {} if hit.passage is None else {"passage": {"start": hit.passage.start, "end": hit.passage.end}}
    return {
        "entity_type": hit.kind,
        "id": hit.record_id,
        "content": hit.text,
        "score": round(hit.score, 6),
        "created_at": format_time(hit.created_at.replace(tzinfo=UTC)),
        "domain": hit.domain,
        **passage,
        **repeated(hit.also, hit.times),
        **changed(hit.earlier, hit.disputed_by),
    }


def _notes(is_fresh: bool, lacking: str | None) -> dict[str, Any]:
    """What the reader must know of the answer: that writes may be missing, or a side of the search."""
    notes: dict[str, Any] = {} if is_fresh else {"stale": True}
    return notes if lacking is None else notes | {"degraded": True, "message": lacking}


_PLACE = {"type": "integer", "minimum": 0}
_DAY = {"type": "string", "format": "date"}

TOOL = Tool(
    name="journal_query",
    toolset="talos",
    title="Search the journal",
    description="Semantic search over journal entries and extracted entities. "
    "Uses hybrid retrieval (vector + keyword + graph).",
    kind="read",
    handler=query_journal,
    timeout_s=10.0,
    memory_operation="search_memory",
    truncation=Truncation(
        {"results": {"content": "{id}"}},
        query="query",
        onward="{shown} results fit: ask again for fewer, or narrow the search by `entity_types`, `domains` or "
        "`time_range`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Natural language query"},
            "entity_types": {
                "type": "array",
                "items": {"type": "string", "enum": ENTITY_TYPES, "x-error-code": "unknown_entity_type"},
                "description": "Filter to specific entity types (Insight, Belief, Pattern, etc.)",
            },
            "domains": {"type": "array", "items": {"type": "string"}, "description": "Filter to specific domains"},
            "time_range": {
                "type": "object",
                "properties": {"start": _DAY, "end": _DAY},
                "description": "Filter to time range",
                "x-error-code": "invalid_time_range",
            },
            "limit": {"type": "integer", "description": "Maximum results", "default": 10},
        },
        "required": ["query"],
    },
    output_schema=writes.output_schema(
        {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "entity_type": {"type": "string"},
                        "id": {"type": "string"},
                        "content": {"type": "string"},
                        "score": {"type": "number", "minimum": 0, "maximum": 1},
                        "created_at": {"type": "string"},
                        "domain": {"type": ["string", "null"]},
                        "related": answers.IDS_SCHEMA,
                        "passage": {
                            "type": "object",
                            "description": "Of a long content the part that fits best: "
                            "characters from start (inclusive) to end (exclusive)",
                            "properties": {"start": _PLACE, "end": _PLACE},
                            "required": ["start", "end"],
                        },
                        **REPEATED,
                        **CHANGED,
                    },
                    "required": ["entity_type", "id", "content", "score", "created_at", "domain", "related"],
                },
            },
            "total_found": answers.COUNT_SCHEMA,
            "sessions": {
                "type": "array",
                "description": "Sessions of what was found, best first: those of the rows, then the best of the others",
                "items": {"type": "string"},
            },
            **GAP_FIELDS,
        }
    ),
)
