"""Reducers of Context Graph: its memories, and what searches returned of them.

The first are fed by the memory topic, the second by the topic of invocations.
"""

from __future__ import annotations

from collections.abc import Iterable

from processors.context_graph.reducers.learning import learn, learn_reads
from processors.context_graph.rules.memories import keep, keep_reads, refusal
from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.context_graph import MEMORY_RECALLED, MEMORY_STORED
from streams.events import LoggedEvent

RECALLS, TRAVERSALS = "context_recalls", "context_traversals"


def _stored_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from keep_reads(logged.event)
    yield from learn_reads()


def _stored(logged: LoggedEvent, rows: Rows) -> Outcome:
    if (refused := refusal(logged.event)) is not None:
        return refused
    kept = keep(logged.event, rows)
    learn(logged.event, rows)
    return Outcome(result=kept.result)


def _recalled(logged: LoggedEvent, rows: Rows) -> None:
    data = logged.event.data
    about = {name: data.get(name) for name in ("query_vector_id", "tool", "session_id")}
    for rank, result in enumerate(data["results"], 1):
        found = {name: result.get(name) for name in ("memory_id", "similarity", "prior", "alignments")}
        rows.insert(RECALLS, about | found | {"rank": rank, "recalled_at": at(logged.event.time)})
    for path in dict.fromkeys(map(tuple, data.get("chains") or ())):  # once a request
        row = {"path": " ".join(path), "hops": len(path) - 1, "tool": data["tool"]}
        rows.insert(TRAVERSALS, row | {"traversed_at": at(logged.event.time)})


REDUCERS = {MEMORY_STORED: Reducer(_stored, _stored_reads), MEMORY_RECALLED: Reducer(_recalled)}
