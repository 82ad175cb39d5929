"""dedup: earlier records that say the same as a new one. It finds; the reducer decides and counts.

Two records say the same when they have the same label (a friction also the same category) and an equal canonical
form, or a cosine of at least .85 unless exactly one of them is negated. Needs the store: it waits until the record
and its vector are applied, which makes every earlier record visible as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import duckdb
import numpy as np

from processors.stages.stage import Stage
from processors.talos import similarity
from processors.talos.canonical import canonical_form
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.engine import SearchIndexes
from streams.errors import Unavailable
from streams.event_types.derived import ENTITIES_EXTRACTED, SIMILAR_FOUND
from streams.events import Event, LoggedEvent
from streams.ids import document_label
from streams.positions import Freshness, Partition
from streams.topics import DERIVED, MEMORY

CANDIDATES = 5
POOL = 50
WAIT_S = 10.0

_EARLIER = """
SELECT e.entity_id, e.text FROM entities e
WHERE e.namespace = ? AND e.label = ? AND e.category IS NOT DISTINCT FROM ?
  AND (e."offset", e.idx) < (?, ?)"""


class Dedup(Stage):
    """An extracted entity -> what it resembles. Only the labels in which repetition means something."""

    name = "dedup"
    source = DERIVED
    accepts = frozenset({ENTITIES_EXTRACTED})
    batch_size = 100
    gather_s = 0.05
    follows = "extract"
    labels = frozenset(
        {"Insight", "Observation", "Friction", "Decision", "Experience", "Reflection", "Question", "Belief", "Limitation", "Capability"}
    )

    def __init__(self, reader: Reader, indexes: SearchIndexes, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        await self._wait_for(events)
        return [[await self._similar(logged, entity) for entity in self._entities(logged)] for logged in events]

    def _entities(self, logged: LoggedEvent) -> list[Mapping[str, Any]]:
        return [entity for entity in logged.event.data["entities"] if entity["label"] in self.labels]

    async def _wait_for(self, events: Sequence[LoggedEvent]) -> None:
        """Until the records are applied, and their vectors too: the embed facts of the same memories."""
        token = Freshness.after(logged.position for logged in events)
        reached = await self._applied.wait(token, timeout_s=WAIT_S, patient=True)
        if reached and self._indexes.model is not None:
            # facts lie on the partition of their memories, and `extract` has just said how far it has read there
            sources = {Partition(MEMORY.name, logged.position.partition) for logged in events}
            memories = Freshness({at: self._applied.next_offset(at, "extract") for at in sources})
            reached = await self._applied.wait(memories, timeout_s=WAIT_S, stages=["embed"], patient=True)
        if not reached:
            raise Unavailable("The store has not caught up with the log; records are compared once it has.")

    async def _similar(self, logged: LoggedEvent, entity: Mapping[str, Any]) -> Event:
        category = (entity.get("properties") or {}).get("category")
        found = await self._reader.run(lambda cursor: self._find(cursor, logged, entity, category))
        info = self._indexes.model
        data = {"record_id": entity["id"], "label": entity["label"], "category": category, "similar": found}
        fact = self.fact(logged, SIMILAR_FOUND, data | {"model_id": info.model_id if info else None})
        return Event(f"{fact.id}/{entity['id']}", fact.source, fact.type, fact.namespace, fact.time, fact.data)

    def _find(
        self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent, entity: Mapping[str, Any], category: str | None
    ) -> list[dict[str, Any]]:
        namespace = logged.event.namespace
        new = similarity.Record(entity["id"], entity["label"], entity["text"], category)
        key = [namespace, new.label, category, logged.position.offset, logged.index]
        form = canonical_form(new.text)
        rows = cursor.execute(f'{_EARLIER} AND e.canonical_form = ? ORDER BY e."offset", e.idx LIMIT {CANDIDATES}', [*key, form]).fetchall()
        cosines: dict[str, float] = {}
        if not rows:
            cosines = self._near(cursor, namespace, entity["id"])
            rows = cursor.execute(f"{_EARLIER} AND e.entity_id IN (SELECT unnest(?))", [*key, list(cosines)]).fetchall() if cosines else []
        earlier = [similarity.Record(record_id, new.label, text, category, cosines.get(record_id)) for record_id, text in rows]
        found = similarity.similar_records(new, earlier)[:CANDIDATES]
        return [{"record_id": f.record_id, "how": f.how, "cosine": None if f.cosine is None else round(f.cosine, 6)} for f in found]

    def _near(self, cursor: duckdb.DuckDBPyConnection, namespace: str, record_id: str) -> dict[str, float]:
        """Cosine by record id of the records nearest to this one, all at least SIMILAR_COSINE."""
        label = document_label(namespace, record_id)
        model = self._indexes.model
        if model is None:
            return {}
        row = cursor.execute("SELECT vector FROM embeddings WHERE label = ? AND space = ?", [label, model.space]).fetchone()
        if row is None:
            return {}
        near = self._indexes.nearest(cursor, np.asarray(row[0], np.float32), POOL, space=model.space)
        cosines = {number: cosine for number, cosine in near if cosine >= similarity.SIMILAR_COSINE and number != label}
        if not cosines:
            return {}
        rows = cursor.execute("SELECT label, record_id FROM documents WHERE label IN (SELECT unnest(?))", [list(cosines)]).fetchall()
        return {found: cosines[number] for number, found in rows}
