"""memory://episode-memory: past episodes whose query resembles this one."""

from __future__ import annotations

from typing import Any

from mcp_ingress.gateway import Call
from mcp_ingress.resource import Items, Resource
from mcp_ingress.toolsets.cognitive_memory import answers
from mcp_ingress.toolsets.cognitive_memory.queries import DAYS_BACK, Conditions, select, since
from streams.errors import Refused

_SIMILAR = """
SELECT e.id, e.query, e.reward, e.reflection, greatest(0.0, list_cosine_similarity(v.vector, ?::FLOAT[])) AS similarity, e.created_at, e.namespace
FROM episode_memory e
JOIN embeddings v ON v.namespace = e.namespace AND v.record_id = 'episode-' || e.id AND v.space = ?"""


async def read(call: Call, arguments: dict[str, Any]) -> Items:
    """Most similar first; every episode within the filters is compared."""
    if not arguments["query"].strip():
        raise Refused("The parameter `query` is blank; it needs some text.")
    space = answers.embedder_of(call).info.space
    [vector] = await answers.encode_stored(call, arguments["query"])  # compared with queries, which are stored
    is_fresh = await call.fresh("embed")
    chosen = Conditions(call.namespace).add("reward >= ?", arguments.get("reward_min"))
    chosen.add("created_at >= ?", since(call.clock.now(), arguments["days_back"])).add("similarity >= ?", arguments["min_similarity"])
    columns = f"WITH compared AS ({_SIMILAR}) SELECT id, query, reward, reflection, similarity, created_at FROM compared"

    tail = "ORDER BY similarity DESC, created_at DESC, id LIMIT ?"
    rows = await call.read(select(columns, chosen, tail, arguments["top_k"], before=(vector.tolist(), space)))
    return [row | {"similarity": round(row["similarity"], 6)} for row in rows], is_fresh


RESOURCE = Resource(
    uri="memory://episode-memory",
    toolset=answers.TOOLSET,
    title="Episodes",
    description="Retrieve Episode Memory with similarity-based search for related past experiences. "
    "Similarity is the cosine of the node's own model.",
    parameters={
        "query": {"type": "string", "description": "Search query for similarity matching"},
        "top_k": {"type": "integer", "minimum": 1, "maximum": 100, "default": 5, "description": "Maximum episodes to return"},
        "min_similarity": {"type": "number", "minimum": 0.0, "maximum": 1.0, "default": 0.5, "description": "Minimum similarity"},
        "reward_min": {"type": "number", "minimum": -1.0, "maximum": 1.0, "description": "Minimum reward filter (-1.0-1.0)"},
        "days_back": DAYS_BACK,
    },
    required=("query",),
    handler=read,
    error_shape=answers.error_shape,
)
