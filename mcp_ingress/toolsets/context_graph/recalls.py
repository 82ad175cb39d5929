"""What a search of Context Graph leaves on the log: which memories it returned, never a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mcp_ingress.call import Call
from processors.context_graph.rules.memories import query_vector_id
from streams.event_types.context_graph import MAX_CHAINS, MAX_RECALLED, VIEWS


def leave_recall(
    call: Call, tool: str, query: str, rows: Sequence[Mapping[str, Any]], priors: Sequence[float | None]
) -> str:
    """Leave what an answer's rows say, best first, in the background; nothing of no rows.

    Returns the id of the query.
    """
    results = [
        {
            "memory_id": row["fingerprintId"],
            "similarity": row["similarity"],
            "prior": prior,
            "alignments": [row["views"].get(f"E{number}") for number in range(1, VIEWS + 1)],
        }
        for row, prior in zip(rows[:MAX_RECALLED], priors, strict=False)
    ]
    walked = [row["path"] for row in rows if "path" in row]
    query_id = query_vector_id(call.namespace, query)
    leave_results(call, tool, query_id, results, walked)
    return query_id


def leave_results(
    call: Call, tool: str, query_id: str, results: Sequence[Mapping[str, Any]], chains: Sequence[Sequence[str]] = ()
) -> None:
    """Leave results and chains as the event has them, of a query that has an id already."""
    if results:
        about = {"query_vector_id": query_id, "tool": tool, "session_id": call.session_id}
        walked = {"chains": [list(chain) for chain in chains[:MAX_CHAINS]]} if chains else {}
        call.leave("context.memory.recalled", {**about, "results": list(results[:MAX_RECALLED]), **walked})
