"""graph_query: ask the knowledge graph in Cypher; it only reads."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from storage.graph.edge_pruning import INHERITED, may_match
from storage.graph.run import CypherAnswer, checked_parameters, run_cypher
from streams.errors import Refused

TIMEOUT_S = 30.0
MARGIN_S = 0.5


async def query_graph(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Check the text, update the projection, and run the query in a process of its own."""
    cypher = writes.checked_text(arguments, "cypher")
    explain = bool(arguments.get("explain", False))
    parameters = checked_parameters(cypher, arguments.get("parameters") or {})
    is_fresh = await call.fresh("extract", "dedup", "patterns")
    file = await call.projection(is_whole=may_match(cypher, INHERITED))
    left_s = min(TIMEOUT_S, call.deadline - call.clock.monotonic()) - MARGIN_S
    if left_s <= 0:
        raise Refused("The time was used up before the query could start; ask again.", code="timeout")
    run = functools.partial(run_cypher, file, cypher, parameters, explain=explain, timeout_s=left_s)
    found = await asyncio.get_running_loop().run_in_executor(None, run)
    return _answer(found) | ({} if is_fresh else {"stale": True})


def _answer(found: CypherAnswer) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "success": True,
        "columns": found.columns,
        "rows": found.rows,
        "execution_time_ms": found.elapsed_ms,
    }
    if found.plan is not None:
        answer["plan"] = found.plan
    if found.truncated:
        answer["truncated"] = True
    return answer


TOOL = Tool(
    name="graph_query",
    toolset="talos",
    title="Query the knowledge graph",
    description="Execute a Cypher query against the knowledge graph. For complex analysis and pattern detection.",
    kind="read",
    handler=query_graph,
    timeout_s=TIMEOUT_S,
    truncation=Truncation(onward="{shown} rows fit: return fewer columns, or page with SKIP {next} and LIMIT."),
    input_schema={
        "type": "object",
        "properties": {
            "cypher": {"type": "string", "description": "Cypher query to execute"},
            "parameters": {"type": "object", "description": "Query parameters (for parameterized queries)"},
            "explain": {"type": "boolean", "description": "Return query plan instead of results", "default": False},
        },
        "required": ["cypher"],
    },
    output_schema=writes.output_schema(
        {
            "columns": {"type": "array", "items": {"type": "string"}},
            "rows": {"type": "array", "items": {"type": "array"}},
            "execution_time_ms": {"type": "integer", "minimum": 0},
            "truncated": {"type": "boolean", "description": "More than 1000 rows existed."},
            "plan": {"type": "string", "description": "With `explain`: how the query would run."},
        }
    ),
)
