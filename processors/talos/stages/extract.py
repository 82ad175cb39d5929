"""extract: entities and relations in a memory, by the toolset's own pure rules."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from processors.frame.stage import Stage, StageParts
from processors.talos.rules.extraction import EXTRACTED_FROM, extract
from storage.applied import AppliedPositions
from streams.codec import in_parts
from streams.event_types.talos import ENTITIES_EXTRACTED
from streams.events import Event, LoggedEvent
from streams.topics import MEMORY


class Extract(Stage):
    """A journal entry or friction -> its entities and relations. It has no state, so it runs anywhere."""

    name = "extract"
    source = MEMORY
    accepts = EXTRACTED_FROM
    batch_size = 100
    linger_s = 0.1

    def __init__(self, applied: AppliedPositions | None = None) -> None:
        self._applied = applied

    @classmethod
    def made(cls, parts: StageParts) -> Extract:
        return cls(parts.store.applied if parts.store is not None else None)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        return [self._extracted(logged) for logged in events]

    def _extracted(self, logged: LoggedEvent) -> list[Event]:
        extraction = extract(logged.event)
        found: list[tuple[str, dict[str, object]]] = [
            (
                "entities",
                {
                    "id": e.id,
                    "label": e.label,
                    "text": e.text,
                    "properties": dict(e.properties),
                    "confidence": e.confidence,
                },
            )
            for e in extraction.entities
        ]
        found += [
            ("relations", {"type": r.type, "from": r.from_id, "to": r.to_id, "properties": dict(r.properties)})
            for r in extraction.relations
        ]
        parts = in_parts(found, self.largest)
        if len(parts) < 2:
            return [self._fact(logged, found)]
        ends = list(accumulate(map(len, parts)))
        return [
            self._fact(logged, part, about=(str(end - len(part)), str(end)))
            for part, end in zip(parts, ends, strict=True)
        ]

    def _fact(
        self, logged: LoggedEvent, found: Sequence[tuple[str, dict[str, object]]], about: Sequence[str] = ()
    ) -> Event:
        data = {name: [item for kind, item in found if kind == name] for name in ("entities", "relations")}
        memory = {"source_event_id": logged.event.id, "session_id": logged.event.data.get("session_id")}
        return self.fact(logged, ENTITIES_EXTRACTED, memory | data, about=about)
