"""prune: what was found in a journal entry goes with it when the entry is corrected or retracted.

It needs the store: it waits until the decision and what `extract` found in the entry are applied. An entity whose
text stands in another entry as well stays.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from processors.frame.stage import Stage, StageParts
from storage.applied import AppliedPositions
from storage.reader import Reader
from streams.event_types.talos import ENTITIES_PRUNED, JOURNAL_CORRECTED, JOURNAL_RETRACTED
from streams.events import Event, LoggedEvent
from streams.ids import document_label
from streams.positions import Freshness
from streams.topics import MEMORY

_FOUND = """
SELECT e.entity_id FROM corrections c
JOIN documents d ON d.label = $label AND d.namespace = c.namespace
JOIN entities e ON e.namespace = c.namespace AND e.source_event_id = d.event_id
WHERE c.namespace = $namespace AND c.record_id = $entry AND c.event_id = $event
  AND NOT EXISTS (
    FROM journal j WHERE j.namespace = e.namespace AND j.entry_id <> c.record_id AND contains(j.content, e.text)
      AND NOT EXISTS (FROM corrections o WHERE o.namespace = j.namespace AND o.record_id = j.entry_id))
ORDER BY e.entity_id"""


class Prune(Stage):
    """A corrected or retracted entry -> the entities that only this entry has stated."""

    name = "prune"
    source = MEMORY
    waits_for = frozenset({"extract"})
    needs_store = True
    accepts = frozenset({JOURNAL_CORRECTED, JOURNAL_RETRACTED})
    batch_size = 100
    linger_s = 1.0

    _applied: AppliedPositions

    def __init__(self, reader: Reader, applied: AppliedPositions) -> None:
        self._reader, self._applied = reader, applied

    @classmethod
    def made(cls, parts: StageParts) -> Prune:
        store = parts.needed_store
        return cls(store.reader, store.applied)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        await self.store_has(Freshness.after(logged.position for logged in events), ["extract"])
        return await self._reader.run(lambda cursor: [self.find(cursor, logged) for logged in events])

    def find(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> Sequence[Event]:
        """What goes with the entry, if this event has ended it."""
        event = logged.event
        entry = event.data["entry_id"]
        asked = {
            "label": document_label(event.namespace, entry),
            "namespace": event.namespace,
            "entry": entry,
            "event": event.id,
        }
        found = [entity for (entity,) in cursor.execute(_FOUND, asked).fetchall()]
        change = "corrected" if event.type == JOURNAL_CORRECTED else "retracted"
        pruned = {"record_ids": found, "reason": f"the entry {entry} was {change}"}
        return [self.fact(logged, ENTITIES_PRUNED, pruned)] if found else []
