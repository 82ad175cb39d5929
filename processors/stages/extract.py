"""extract: entities and relations in a memory, by the toolset's own pure rules."""

from __future__ import annotations

from collections.abc import Sequence

from processors.stages.stage import Stage
from processors.talos.extraction import EXTRACTED_FROM, extract
from storage.applied import AppliedPositions
from streams.event_types.derived import ENTITIES_EXTRACTED
from streams.events import Event, LoggedEvent
from streams.topics import MEMORY


class Extract(Stage):
    """A journal entry or friction -> its entities and relations. Without state: runs anywhere, and gathers where it is told who waits."""

    name = "extract"
    source = MEMORY
    accepts = EXTRACTED_FROM
    batch_size = 100
    gather_s = 0.1
    awaited_for = frozenset({"dedup", "patterns", "consolidate"})

    def __init__(self, applied: AppliedPositions | None = None) -> None:
        self._applied = applied

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        return [[self._extracted(logged)] for logged in events]

    def _extracted(self, logged: LoggedEvent) -> Event:
        extraction = extract(logged.event)
        return self.fact(
            logged,
            ENTITIES_EXTRACTED,
            {
                "source_event_id": logged.event.id,
                "session_id": logged.event.data.get("session_id"),
                "entities": [
                    {"id": e.id, "label": e.label, "text": e.text, "properties": dict(e.properties), "confidence": e.confidence}
                    for e in extraction.entities
                ],
                "relations": [
                    {"type": r.type, "from": r.from_id, "to": r.to_id, "properties": dict(r.properties)} for r in extraction.relations
                ],
            },
        )
