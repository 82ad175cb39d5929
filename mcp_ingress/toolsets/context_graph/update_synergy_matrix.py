"""update_synergy_matrix: a judged result changes how much the views that found it say together."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.merged_ids import FOLLOWED_FROM, follow
from mcp_ingress.toolsets.context_graph.reader import reader_of
from mcp_ingress.toolsets.context_graph.vector_queries import find_recall, find_vector
from processors.context_graph.rules.synergy import FEEDBACK, RATE, UPDATE_SCOPES
from processors.context_graph.rules.views.alignment import alignments
from streams.errors import Refused

_DECIDED = ("pairs_updated", "mean_before", "mean_after", "frobenius_delta", "largest_changes", "version")


async def update(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish the judgement with the alignments of that search, and answer what it changed."""
    score = arguments.get("relevance_score")
    score = FEEDBACK[arguments["feedback"]] if score is None else float(score)
    asked = {name: arguments[name] for name in ("query_vector_id", "result_vector_id", "feedback")}
    rated = {"learning_rate": float(arguments["learning_rate"]), "update_scope": arguments["update_scope"]}
    event = writes.request(call, "context.synergy.updated", {**asked, "score": score, **rated})
    found, told = await _found(call, arguments)
    event = writes.with_findings(event, found)
    published = await writes.publish(call, event)
    result, problem = await writes.decision(call, published, event_id=event.id)
    decided: Mapping[str, Any] = dict.fromkeys(_DECIDED) if result is None else result
    own = {"feedback": arguments["feedback"], "effective_score": score, **told}
    own |= {name: decided[name] for name in _DECIDED}
    return writes.written(published, own, pending=result is None, problem=problem)


async def _found(call: Call, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What the search left, else the alignments of two memories, or of their successors, as they are.

    Raises Refused.
    """
    query_id, result_id = arguments["query_vector_id"], arguments["result_vector_id"]
    left = await call.own_records()  # what a search has just answered counts
    await call.applied(call.read_token.merged(left), timeout_s=call.services.limits.read_wait_s)
    found = await call.read(
        functools.partial(find_recall, namespace=call.namespace, query_id=query_id, memory_id=result_id)
    )
    if found is not None:
        return found, {}
    given = {name: arguments[name] for name in ("query_vector_id", "result_vector_id")}
    ends, told = await call.read(functools.partial(follow, namespace=call.namespace, given=given))
    aligned = await call.read(functools.partial(_compared, call, ends["query_vector_id"], ends["result_vector_id"]))
    if aligned is None:
        message = (
            f"No search under {query_id[:80]!r} has returned {result_id[:80]!r}: give the `query_vector_id` of "
            "an answer of `search_teleological` or `search_graph` and the id of one of its results, or the ids of two "
            "memories."
        )
        raise Refused(message, reason="not_found", field="query_vector_id")
    return {"alignments": aligned}, told


def _compared(
    call: Call, query_id: str, result_id: str, cursor: duckdb.DuckDBPyConnection
) -> list[float | None] | None:
    """The alignments of two memories, or of a vector's memory and another; None where one is not there."""
    reader = reader_of(call, cursor)
    query = find_vector(cursor, call.namespace, query_id)
    if query is None or query.memory_id is None:
        return None
    asked, result = reader.stored([query.memory_id, result_id])
    if asked is None or result is None:
        return None
    aligned = alignments(reader.as_query(asked), [result])[0]
    return [None if np.isnan(value) else float(value) for value in aligned]


_NUMBER = {"type": ["number", "null"]}

TOOL = Tool(
    name="update_synergy_matrix",
    toolset="context_graph",
    title="Judge a result",
    description="Update the synergy matrix based on feedback: views that found a relevant result count more in the "
    "next `search_teleological`, others less. Judgements also teach how far `relevance` can be trusted: judge what "
    "was wrong, too.",
    kind="write",
    handler=update,
    memory_operation="update_memory",
    input_schema={
        "type": "object",
        "properties": {
            "query_vector_id": {"type": "string", "description": "`query_vector_id` of a search"},
            "result_vector_id": {"type": "string", "description": "`id` of one of its results"},
            "feedback": {"type": "string", "enum": list(FEEDBACK), "description": "What the result was"},
            "relevance_score": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "description": "Wins over `feedback`; above 0.5 raises, below lowers",
            },
            "learning_rate": {
                "type": "number",
                "minimum": 0.001,
                "maximum": 0.5,
                "default": RATE,
                "description": "How far one judgement goes",
            },
            "update_scope": {
                "type": "string",
                "enum": list(UPDATE_SCOPES),
                "default": "contributing_pairs",
                "description": "Which pairs learn",
            },
        },
        "required": ["query_vector_id", "result_vector_id", "feedback"],
    },
    output_schema=writes.output_schema(
        {
            "feedback": {"type": "string"},
            **FOLLOWED_FROM,
            "effective_score": {"type": "number", "minimum": 0, "maximum": 1},
            "pairs_updated": {"type": ["integer", "null"], "description": "Of 78"},
            "mean_before": _NUMBER,
            "mean_after": _NUMBER,
            "frobenius_delta": _NUMBER,
            "largest_changes": {
                "type": ["array", "null"],
                "items": {
                    "type": "object",
                    "properties": {
                        "pair": {"type": "array", "items": {"type": "string"}},
                        "old": {"type": "number"},
                        "new": {"type": "number"},
                    },
                },
            },
            "version": {"type": ["integer", "null"], "description": "Judgements until now"},
        }
    ),
)
