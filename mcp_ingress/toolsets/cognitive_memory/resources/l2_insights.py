"""memory://l2-insights: insights, newest first or by a search, with filters."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.resource import Items, Resource
from mcp_ingress.toolsets.cognitive_memory import answers
from mcp_ingress.toolsets.cognitive_memory.queries import DAY, Conditions, after, day, plain, select, start
from mcp_ingress.toolsets.cognitive_memory.retrieval import insights, retrieve
from processors.cognitive.rules.ranking import POOL, WEIGHTS
from storage.search.query import Query

WIDER = 8
_COLUMNS = "id, content, fidelity_score, created_at, source_ids, fidelity_warning, warning_message, source_coverage"
_METADATA = ("fidelity_score", "fidelity_warning", "warning_message", "source_coverage")


async def read(call: Call, arguments: dict[str, Any]) -> Items:
    """Newest first; with a query in the order of hybrid_search, after the filters."""
    first = start(day(arguments.get("created_after"), "created_after"))
    behind = after(day(arguments.get("created_before"), "created_before"))
    query, least = arguments.get("query"), arguments.get("fidelity_min")
    is_fresh = await call.fresh(vectors=bool(query))
    if query is not None and query.strip():
        found = await _search(call, query, arguments["top_k"], least, first, behind)
        return found, is_fresh
    chosen = (
        Conditions(call.namespace)
        .add("fidelity_score >= ?", least)
        .add("created_at >= ?", first)
        .add("created_at < ?", behind)
    )
    order = 'ORDER BY created_at DESC, "offset" DESC, idx DESC LIMIT ?'
    rows = await call.read(select(f"SELECT {_COLUMNS} FROM l2_insights", chosen, order, arguments["top_k"]))
    return [_item(row) for row in rows], is_fresh


async def _search(
    call: Call, query: str, top_k: int, least: float | None, first: datetime | None, behind: datetime | None
) -> list[dict[str, Any]]:
    """Searched with larger and larger pools until the filters leave enough, or there are no more."""
    vector, space = await answers.encode_question(call, query)
    chosen, pool = insights(call.namespace, created_from=first, created_before=behind), POOL * top_k
    while True:
        search_query = Query(query, vector, chosen, 2 * pool, space=space, pool=pool)
        result = await retrieve(call, search_query, WEIGHTS)
        insights_left = [found for found in result.insights if least is None or found.row["fidelity_score"] >= least]
        if least is None or len(insights_left) >= top_k or max(result.semantic, result.keyword) < pool:
            return [_item(found.row) | {"score": round(found.place.score, 6)} for found in insights_left[:top_k]]
        pool *= WIDER


def _item(row: Any) -> dict[str, Any]:
    columns = {name: row[name] for name in ("id", "content", "fidelity_score")}
    metadata = {name: row[name] for name in _METADATA}
    return {**columns, "created_at": plain(row["created_at"]), "source_ids": row["source_ids"], "metadata": metadata}


RESOURCE = Resource(
    uri="memory://l2-insights",
    toolset="cognitive_memory",
    title="Insights",
    description="Query L2 Insights database with search and filtering capabilities",
    parameters={
        "query": {"type": "string", "description": "Text search query"},
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "default": 50,
            "description": "Maximum results to return",
        },
        "fidelity_min": {
            "type": "number",
            "minimum": 0.0,
            "maximum": 1.0,
            "description": "Minimum fidelity score filter (0.0-1.0)",
        },
        "created_after": DAY,
        "created_before": DAY,
    },
    truncation=Truncation(
        {"contents": {"content": "l2-{id}"}},
        query="query",
        onward="{shown} insights fit: narrow by `query`, `fidelity_min`, `created_after` or `created_before`.",
    ),
    handler=read,
)
