"""hybrid_search: insights by meaning and by words, fused by rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import CHANGED, REPEATED, changed, repeated
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from mcp_ingress.toolsets.cognitive_memory.retrieval import FoundInsight, insights, retrieve
from processors.cognitive.rules.ranking import WeightsError, checked_weights
from storage.search.query import Query
from streams.errors import Refused


async def search(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, search both sides in parallel, and fuse."""
    answers.checked_texts(arguments, "query_text")
    weights = _weights(arguments.get("weights"))
    given = arguments.get("query_embedding")
    if given is not None:
        vector, space = _checked_vector(call, given), None
    else:
        vector, space = await answers.encode_question(call, arguments["query_text"])
    is_fresh = await call.fresh(vectors=True)
    query = Query(arguments["query_text"], vector, insights(call.namespace), arguments["top_k"], space=space)
    result = await retrieve(call, query, weights)
    counts = {"semantic_results_count": result.semantic, "keyword_results_count": result.keyword}
    return {
        "results": [result_of(found) for found in result.insights],
        "query_embedding_dimension": len(vector),
        **counts,
        "final_results_count": len(result.insights),
        "weights": weights,
        "status": "success",
        **({} if is_fresh else {"stale": True}),
    }


def result_of(found: FoundInsight) -> dict[str, Any]:
    """An insight as the answer has it."""
    place = found.place
    return {
        **{name: found.row[name] for name in ("id", "content", "source_ids")},
        "score": round(place.score, 6),
        "rrf_score": round(place.rrf_score, 6),
        "semantic_rank": place.semantic_rank,
        "keyword_rank": place.keyword_rank,
        "distance": found.distance,
        **repeated(found.also, found.times),
        **changed(found.earlier, found.disputed_by),
    }


def _weights(given: dict[str, float] | None) -> dict[str, float]:
    try:
        return checked_weights(given)
    except WeightsError as error:
        raise Refused(str(error)) from None


def _checked_vector(call: Call, given: list[float]) -> np.ndarray:
    """The caller's vector at unit length. Refused when it is not a vector of the node's model."""
    model = call.services.embedder.info if call.services.embedder is not None else None
    if model is not None and len(given) != model.dim:
        raise Refused(f"Invalid embedding dimension: {len(given)}. Expected {model.dim}.")
    length = math.sqrt(sum(float(number) ** 2 for number in given))
    if not math.isfinite(length) or length == 0:
        raise Refused(
            "The argument `query_embedding` has no direction: all of its numbers are zero, or they are too large."
        )
    return (np.asarray(given, np.float64) / length).astype(np.float32)


_WEIGHT = {"type": "number", "minimum": 0.0, "maximum": 1.0}

TOOL = Tool(
    name="hybrid_search",
    toolset="cognitive_memory",
    title="Search insights",
    description="Perform hybrid semantic + keyword search with RRF fusion. "
    "Embedding is generated automatically from query_text if not provided.",
    kind="read",
    handler=search,
    timeout_s=30.0,
    memory_operation="search_memory",
    truncation=Truncation(
        {"results": {"content": "l2-{id}"}},
        query="query_text",
        onward="{shown} results fit: ask for fewer with `top_k`.",
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query_text": {
                "type": "string",
                "minLength": 1,
                "description": "Query text for search (embedding generated automatically)",
            },
            "query_embedding": {
                "type": "array",
                "items": {"type": "number"},
                "x-embedding": True,
                "description": "Optional: {dim}-dimensional query embedding "
                "(auto-generated from query_text if omitted)",
            },
            "top_k": {
                "type": "integer",
                "minimum": 1,
                "maximum": 100,
                "default": 5,
                "description": "Maximum number of results to return",
            },
            "weights": {
                "type": "object",
                "properties": {
                    "semantic": {**_WEIGHT, "default": 0.7, "description": "Weight for semantic search results"},
                    "keyword": {**_WEIGHT, "default": 0.3, "description": "Weight for keyword search results"},
                },
                "default": {"semantic": 0.7, "keyword": 0.3},
                "description": "Weights for fusing semantic and keyword results (must sum to 1.0)",
            },
        },
        "required": ["query_text"],
    },
    output_schema=answers.output_schema(
        {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": answers.ID,
                        "content": {"type": "string"},
                        "source_ids": {"type": "array", "items": {"type": "integer"}},
                        "score": {"type": "number"},
                        "rrf_score": {"type": "number"},
                        "semantic_rank": answers.COUNT,
                        "keyword_rank": answers.COUNT,
                        "distance": answers.NUMBER,
                        **REPEATED,
                        **CHANGED,
                    },
                    "required": ["id", "content", "source_ids", "score"],
                },
            },
            "query_embedding_dimension": answers.COUNT,
            "semantic_results_count": answers.COUNT,
            "keyword_results_count": answers.COUNT,
            "final_results_count": answers.COUNT,
            "weights": {"type": "object"},
            **GAP_FIELDS,
        }
    ),
)
