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
    data = logged.event.data
    found = [merge(logged.event, group, rows) for group in data["groups"]]
    done = [one for one in found if one.refused is None]
    shown = [{"memory_id": one.memory_id, "merged_from": one.merged_from, "similarity": one.similarity} for one in done]
    return Outcome(
        result={
            "event_id": logged.event.id,
            "merged": shown[:SHOWN],
            "groups": len(done),
            "refused": len(found) - len(done),
            "pairs": sum(one.pairs for one in done),
            "removed": sum(len(one.merged_from) - 1 for one in done),
            "bytes_saved": sum(one.bytes_saved for one in done),
            **{name: data.get(name) for name in ("processed", "candidates", "is_partial")},
        }
    )


REDUCERS = {MEMORIES_MERGED: Reducer(_merged, _reads)}
