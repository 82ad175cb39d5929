"""Reducer of ends (memory topic): memories that say the same become one.

Of two merges of one memory the first in the log wins; the other group stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from processors.context_graph.rules.ends import merge
from processors.context_graph.rules.memories import CONTENTS, ENDS, MEMORIES, hash_of
from processors.frame.reducer import DOCUMENTS, Key, Outcome, Reducer, Rows
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.events import LoggedEvent
from streams.ids import document_label

SHOWN = 20
"""Groups that the outcome of a request names; it counts all."""


def _reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    for group in logged.event.data["groups"]:
        identity = group["memory_id"]
        yield MEMORIES, (identity,)
        yield DOCUMENTS, (document_label(logged.event.namespace, identity),)
        yield CONTENTS, (hash_of(group["content"]),)
        for source in group["merged_from"]:
            yield MEMORIES, (source,)
            yield ENDS, (source,)


def _merged(logged: LoggedEvent, rows: Rows) -> Outcome:
    found = [merge(logged.event, group, rows) for group in logged.event.data["groups"]]
    done = [one for one in found if one.refused is None]
    shown = [{"memory_id": one.memory_id, "merged_from": one.merged_from, "similarity": one.similarity} for one in done]
    return Outcome(
        result={
            "event_id": logged.event.id,
            "merged": shown[:SHOWN],
            "groups": len(done),
            "memories": sum(len(one.merged_from) for one in done),
            "refused": len(found) - len(done),
        }
    )


REDUCERS = {MEMORIES_MERGED: Reducer(_merged, _reads)}
