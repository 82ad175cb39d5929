"""What a search of Context Graph leaves on the log: which memories it returned, never a text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from mcp_ingress.call import Call
from processors.context_graph.rules.memories import query_vector_id
from processors.context_graph.rules.modulators import MISSED_EVERY_S
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


@dataclass
class Misses:
    """When a search of each namespace last left out all that it found; this node's memory alone."""

    at: dict[str, datetime] = field(default_factory=dict)

    def counts(self, namespace: str, now: datetime) -> bool:
        """Whether another one counts already; then it is the last."""
        last = self.at.get(namespace)
        if last is not None and 0 <= (now - last).total_seconds() < MISSED_EVERY_S:
            return False
        self.at[namespace] = now
        return True


async def leave_miss(call: Call, tool: str, query_id: str, *, is_missed: bool) -> None:
    """Leave that a search found something and answered none of it: the next one asks for less."""
    if is_missed and not call.is_read_only and call.part(Misses).counts(call.namespace, call.clock.now()):
        about = {"tool": tool, "query_vector_id": query_id}
        session = {} if call.session_id is None else {"session_id": call.session_id}
        await call.leave_write("context.memory.missed", about | session)
