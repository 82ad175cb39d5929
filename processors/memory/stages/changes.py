"""changes: earlier memories of any kind that a new one changes (`processors/memory/rules/change.py`).

It needs the store: it waits until the memory and its vector are applied, and compares it with the earlier memories that
are nearest to it. Without a model nothing is near, and nothing is found. Each pair is published once, so that a rebuild
has the same pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import duckdb
import numpy as np

from processors.frame.stage import Stage, StageParts
from processors.memory.read.earlier import CHANGES_STAGE, Memory, changed_by, nearest_memories, texts_to_compare
from processors.memory.registry import REPEATED, TEXTS
from processors.memory.vector_facts import VECTOR_STAGE
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from streams.event_types.memory import CHANGE_FOUND
from streams.events import Event, LoggedEvent, event_types
from streams.ids import document_label
from streams.positions import Freshness
from streams.topics import MEMORY

BATCH_MEMORIES = 16
"""For this many memories the index is read at once."""


class MemoryChanges(Stage):
    """A memory -> the earlier ones of which it changes what they say."""

    name = CHANGES_STAGE
    source = MEMORY
    waits_for = frozenset({VECTOR_STAGE})
    needs_store = True
    accepts = frozenset(kind for kind in TEXTS.keys() - REPEATED if event_types()[kind].topic == MEMORY.name)
    batch_size = 64
    linger_s = 1.0

    _applied: AppliedPositions

    def __init__(self, reader: Reader, indexes: IndexSet, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied

    @classmethod
    def made(cls, parts: StageParts) -> MemoryChanges:
        store = parts.needed_store
        return cls(store.reader, store.indexes, store.applied)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        if self._indexes.model is None:
            return [[] for _ in events]
        await self.store_has(Freshness.after(logged.position for logged in events), [VECTOR_STAGE])
        return await self._reader.run(lambda cursor: self.find(cursor, events))

    def find(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The facts about each event, from what the store holds now."""
        found: list[Sequence[Event]] = []
        for start in range(0, len(events), BATCH_MEMORIES):
            some = events[start : start + BATCH_MEMORIES]
            texts = [texts_to_compare(logged.event) for logged in some]
            near = self._near(
                cursor,
                {
                    document_label(logged.event.namespace, identity): logged.event.namespace
                    for logged, stated in zip(some, texts, strict=True)
                    for identity in stated
                },
            )
            for logged, stated in zip(some, texts, strict=True):
                found.append(self._changed(logged, stated, near))
                self._indexes.yield_to_callers()
        return found

    def _near(self, cursor: duckdb.DuckDBPyConnection, namespaces: Mapping[int, str]) -> dict[int, list[Memory]]:
        """The nearest memories to each of these that has a vector, by label. `namespaces`: label -> its namespace."""
        model = self._indexes.model
        space = self._indexes.space(model.space if model is not None else None)
        held = space.vectors(np.array(sorted(namespaces), np.int64)) if namespaces else {}
        texts = [(namespaces[label], vector) for label, vector in held.items()]
        return dict(zip(held, nearest_memories(cursor, self._indexes, space, texts), strict=True))

    def _changed(
        self, logged: LoggedEvent, stated: Mapping[str, str], near: Mapping[int, Sequence[Memory]]
    ) -> list[Event]:
        event, model, facts = logged.event, self._indexes.model, list[Event]()
        moment = event.time.replace(tzinfo=None)
        for identity, text in stated.items():
            others = near.get(document_label(event.namespace, identity), ())
            older = [
                {"record_id": other.record_id, "cosine": round(other.cosine or 0.0, 6)}
                for other in changed_by(text, moment, others, {identity})
            ]
            if older:
                data = {"record_id": identity, "older": older, "model_id": model.model_id if model else None}
                facts.append(self.fact(logged, CHANGE_FOUND, data, about=(identity,)))
        return facts
