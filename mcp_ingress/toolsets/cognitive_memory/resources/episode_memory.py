"""memory://episode-memory: past episodes whose query resembles this one."""

from __future__ import annotations

from typing import Any

import numpy as np

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.resource import Items, Resource
from mcp_ingress.toolsets.cognitive_memory import answers
from mcp_ingress.toolsets.cognitive_memory.queries import DAYS_BACK, Conditions, select, since
from storage.vector_codec import read_vectors
from streams.errors import Refused

_EMBEDDED = """
SELECT e.id, e.query, e.reward, e.reflection, v.vector, e.created_at, e.namespace
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
    chosen.add("created_at >= ?", since(call.clock.now(), arguments["days_back"]))
    columns = f"WITH embedded AS ({_EMBEDDED}) SELECT id, query, reward, reflection, vector, created_at FROM embedded"
    find = select(columns, chosen, "ORDER BY created_at DESC, id", before=(space,))
    similar = await call.read(lambda cursor: _compared(find(cursor), vector))
    return [row for row in similar if row["similarity"] >= arguments["min_similarity"]][: arguments["top_k"]], is_fresh


def _compared(rows: list[dict[str, Any]], query_vector: np.ndarray) -> list[dict[str, Any]]:
    """The rows with their similarity in place of their vector, most similar first.

    The similarity is the cosine to a unit vector, never below 0.
    """
    if not rows:
        return []
    cosines = np.maximum(
        0.0, read_vectors([row["vector"] for row in rows]) @ np.asarray(query_vector, np.float32)
    ).tolist()
    order = ("id", "query", "reward", "reflection", "similarity", "created_at")
    found = [row | {"similarity": round(cosine, 6)} for row, cosine in zip(rows, cosines, strict=True)]
    return sorted(({name: row[name] for name in order} for row in found), key=lambda row: -row["similarity"])


RESOURCE = Resource(
    uri="memory://episode-memory",
    toolset="cognitive_memory",
    title="Episodes",
    description="Retrieve Episode Memory with similarity-based search for related past experiences. "
    "Similarity is the cosine of the node's own model.",
    parameters={
        "query": {"type": "string", "description": "Search query for similarity matching"},
        "top_k": {
            "type": "integer",
            "minimum": 1,
            "maximum": 100,
            "default": 5,
            "description": "Maximum episodes to return",
        },
        "min_similarity": {
            "type": "number",
            "minimum": 0.0,
            "maximum": 1.0,
            "default": 0.5,
            "description": "Minimum similarity",
        },
        "reward_min": {
            "type": "number",
            "minimum": -1.0,
            "maximum": 1.0,
            "description": "Minimum reward filter (-1.0-1.0)",
        },
        "days_back": DAYS_BACK,
    },
    required=("query",),
    truncation=Truncation(
        {"contents": {"query": "episode-{id}?field=query", "reflection": "episode-{id}?field=reflection"}},
        query="query",
        onward="{shown} episodes fit: ask for fewer with `top_k`, or narrow by `min_similarity` or `days_back`.",
    ),
    handler=read,
)
