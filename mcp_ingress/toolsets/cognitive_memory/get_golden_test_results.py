"""get_golden_test_results: run the golden test set through hybrid_search and report drift."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import duckdb
import orjson

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from mcp_ingress.toolsets.cognitive_memory.retrieval import insights, retrieve
from processors.cognitive.rules.golden import TOP, breakdown, precision_at_5
from processors.cognitive.rules.ranking import WEIGHTS
from storage.search.query import Query
from streams.errors import Refused


async def run(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Search each query, publish what was measured; baseline and drift are the reducer's."""
    is_fresh = await call.fresh("embed")
    queries = await call.read(functools.partial(_queries, namespace=call.namespace))
    if not queries:
        raise Refused("Golden test set is empty", code="nothing_to_evaluate")
    precisions, seconds = await _measure(call, queries)
    embedder = call.services.embedder
    measured = {
        "date": call.clock.now().date().isoformat(),
        "precision_at_5": sum(value for _, value in precisions) / len(precisions),
        "queries_tested": len(precisions),
        "query_breakdown": breakdown(precisions),
        "embedding_model": embedder.info.model_id if embedder else None,
        "avg_retrieval_time_ms": round(1000 * seconds / len(precisions), 3),
    }
    request = writes.request(call, "cm.golden.completed", {})
    published, result = await answers.write(call, writes.with_findings(request, measured))
    undecided = dict.fromkeys(("baseline_precision", "drift_detected", "details", "drop_absolute", "drop_relative"))
    answer = answers.written(published, result or {**measured, **undecided}, pending=result is None)
    return answer if is_fresh else answer | {"stale": True}


async def _measure(call: Call, queries: Sequence[tuple[str, str, list[int]]]) -> tuple[list[tuple[str, float]], float]:
    """(class, precision) of each query, and the seconds that the searches took."""
    precisions, seconds = [], 0.0
    for query, kind, expected in queries:
        started = call.clock.monotonic()
        vector, space = await answers.encode_question(call, query)
        search_query = Query(query, vector, insights(call.namespace), TOP, space=space)
        result = await retrieve(call, search_query, WEIGHTS)
        seconds += call.clock.monotonic() - started
        precisions.append((kind, precision_at_5([found.states(expected) for found in result.insights], expected)))
    return precisions, seconds


def _queries(cursor: duckdb.DuckDBPyConnection, namespace: str) -> list[tuple[str, str, list[int]]]:
    rows = cursor.execute(
        "SELECT query, query_type, expected_docs FROM golden_test_set WHERE namespace = ? ORDER BY id", [namespace]
    ).fetchall()
    return [(query, kind, orjson.loads(expected)) for query, kind, expected in rows]


TOOL = Tool(
    name="get_golden_test_results",
    toolset="cognitive_memory",
    title="Run the golden test",
    description="Execute Golden Test Set for daily Precision@5 tracking and model drift detection. "
    "Returns daily metrics and drift detection status.",
    kind="write",
    handler=run,
    timeout_s=60.0,
    input_schema={"type": "object", "properties": {}, "required": []},
    output_schema=answers.output_schema(
        {
            "date": answers.TEXT,
            "precision_at_5": answers.NUMBER,
            "baseline_precision": answers.NUMBER,
            "drift_detected": answers.FLAG,
            "queries_tested": answers.COUNT,
            "details": answers.TEXT,
            "query_breakdown": {"type": "object"},
            "drop_absolute": answers.NUMBER,
            "drop_relative": answers.NUMBER,
            "embedding_model": answers.TEXT,
            "avg_retrieval_time_ms": answers.NUMBER,
        }
    ),
)
