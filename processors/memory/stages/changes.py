"""changes: earlier memories of any kind that a new one changes (`processors/memory/rules/change.py`).

It needs the store: it waits until the memory and its vector are applied, and compares it with the earlier memories that
are nearest to it. Without a model nothing is near, and nothing is found. Each pair is published once, so that a rebuild
has the same pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from processors.frame.stage import Stage, StageParts
from processors.memory.registry import TEXTS, texts_to_embed
from processors.memory.rules.change import changes
from processors.memory.rules.statement import statements_of
from processors.memory.vector_facts import VECTOR_STAGE
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from storage.search.records.matches import Matches
from streams.event_types.memory import CHANGE_FOUND
from streams.events import Event, LoggedEvent, event_types
from streams.ids import document_label
from streams.positions import Freshness
from streams.topics import MEMORY

LEAST_COSINE = 0.4
"""Statements about the same thing that say it in other words are not nearer than this."""
NEAREST, MOST = 40, 10
"""Of this many nearest records, whatever their kind and namespace, at most MOST earlier ones are named."""
BATCH_MEMORIES = 16
"""This many memories are compared before other threads get the interpreter."""


class MemoryChanges(Stage):
    """A memory -> the earlier ones of which it changes what they say."""

    name = "changes"
    source = MEMORY
    waits_for = frozenset({VECTOR_STAGE})
    needs_store = True
    accepts = frozenset(kind for kind in TEXTS if event_types()[kind].topic == MEMORY.name)
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
            texts = [self._statements(logged.event) for logged in some]
            near = self._near(
                [
                    document_label(logged.event.namespace, identity)
                    for logged, stated in zip(some, texts, strict=True)
                    for identity in stated
                ]
            )
            rows = _read_documents(cursor, {other for matches in near.values() for other, _ in matches})
            found += [self._changed(logged, stated, near, rows) for logged, stated in zip(some, texts, strict=True)]
            self._indexes.yield_to_callers()
        return found

    def _statements(self, event: Event) -> dict[str, str]:
        """Record id -> text of an event's memories that say something which can change, each text once."""
        texts = {text: identity for identity, text in reversed(list(texts_to_embed(event)))}
        return {identity: text for text, identity in texts.items() if statements_of(text)}

    def _near(self, labels: Sequence[int]) -> dict[int, Matches]:
        model = self._indexes.model
        space = self._indexes.space(model.space if model is not None else None)
        held = space.vectors(np.array(sorted(set(labels)), np.int64)) if labels else {}
        if not held:
            return {}
        near = space.nearest_to_each(np.stack(list(held.values())), NEAREST, LEAST_COSINE)
        return dict(zip(held, near, strict=True))

    def _changed(
        self,
        logged: LoggedEvent,
        stated: Mapping[str, str],
        near: Mapping[int, Matches],
        rows: Mapping[int, tuple[Any, ...]],
    ) -> list[Event]:
        event, model, facts = logged.event, self._indexes.model, list[Event]()
        moment = event.time.replace(tzinfo=None)
        for identity, text in stated.items():
            older: list[dict[str, Any]] = []
            for label, cosine in near.get(document_label(event.namespace, identity), ()):
                namespace, other, said, created_at = rows.get(label, (None, None, "", moment))
                is_earlier = namespace == event.namespace and created_at < moment and other != identity
                if is_earlier and changes(said, text):
                    older.append({"record_id": other, "cosine": round(cosine, 6)})
            if older:
                data = {"record_id": identity, "older": older[:MOST], "model_id": model.model_id if model else None}
                facts.append(self.fact(logged, CHANGE_FOUND, data, about=(identity,)))
        return facts


def _read_documents(cursor: duckdb.DuckDBPyConnection, labels: set[int]) -> dict[int, tuple[Any, ...]]:
    """label -> (namespace, record id, text, created_at)."""
    if not labels:
        return {}
    rows = cursor.execute(
        "SELECT label, namespace, record_id, text, created_at FROM documents "
        "WHERE label IN (SELECT unnest(?::BIGINT[]))",
        [sorted(labels)],
    ).fetchall()
    return {row[0]: row[1:] for row in rows}
