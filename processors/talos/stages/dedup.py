"""dedup: earlier records that say the same as a new one. It finds; the reducer decides and counts.

Two records say the same when they have the same label (a friction also the same category) and an equal canonical
form, or a cosine of at least .85 unless exactly one of them is negated or the new one changes a value
(`rules/similarity.py`). Needs the store: it waits until the record and its vector are applied, which makes every
earlier record visible as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import orjson

from processors.frame.stage import Stage, StageParts
from processors.talos.rules import similarity
from processors.talos.rules.canonical import canonical_form
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from storage.search.records.matches import Matches
from storage.search.vectors.space import Space
from storage.statements import execute
from streams.event_types.talos import ENTITIES_EXTRACTED, SIMILAR_FOUND
from streams.events import Event, LoggedEvent
from streams.ids import document_label
from streams.positions import Freshness, Partition
from streams.topics import DERIVED, MEMORY

CANDIDATES = 5
POOL = 50

_COLUMNS = {
    "number": "INTEGER",
    "namespace": "VARCHAR",
    "record_id": "VARCHAR",
    "label": "VARCHAR",
    "category": "VARCHAR",
}
# earlier than the entity was first stated, not than this record: one that comes again finds the same
_EARLIER = """
SELECT k.number, e.entity_id, e.text FROM (SELECT unnest(from_json(?, '{structure}'), recursive := true)) k
JOIN entities own ON own.entity_id = k.record_id AND own.namespace = k.namespace
JOIN entities e ON e.{key} = k.{key} AND e.namespace = k.namespace AND e.label = k.label
  AND e.category IS NOT DISTINCT FROM k.category
  AND (e."offset", e.idx) < (own."offset", own.idx)
QUALIFY row_number() OVER (PARTITION BY k.number ORDER BY e."offset", e.idx) <= {most}
ORDER BY k.number, e."offset", e.idx"""


def _earlier(key: str, most: int) -> str:
    """The query for earlier entities by the column `key`.

    It takes a JSON array of `_New.query_row` and gives (number, id, text).
    """
    return _EARLIER.format(structure=orjson.dumps([_COLUMNS | {key: "VARCHAR"}]).decode(), key=key, most=most)


_SAME_FORM = _earlier("canonical_form", CANDIDATES)
_NAMED = _earlier("entity_id", POOL)


@dataclass(frozen=True, slots=True)
class _New:
    """An extracted entity of a batch, to be compared with what was there before it."""

    logged: LoggedEvent
    record: similarity.EntityRecord

    @property
    def namespace(self) -> str:
        return self.logged.event.namespace

    def query_row(self, number: int, **key: str) -> dict[str, Any]:
        """Its row in a query, under its number in the batch, with what the others are looked up by."""
        record = self.record
        return {
            "number": number,
            "namespace": self.namespace,
            "record_id": record.record_id,
            "label": record.label,
            "category": record.category,
            **key,
        }


class Dedup(Stage):
    """An extracted entity -> what it resembles. Only the labels in which repetition means something."""

    name = "dedup"
    source = DERIVED
    waits_for = frozenset({"embed"})
    needs_store = True
    accepts = frozenset({ENTITIES_EXTRACTED})
    batch_size = 100
    linger_s = 1.0
    follows = "extract"
    labels = frozenset(
        {
            "Insight",
            "Observation",
            "Friction",
            "Decision",
            "Experience",
            "Reflection",
            "Question",
            "Belief",
            "Limitation",
            "Capability",
        }
    )

    _applied: AppliedPositions

    def __init__(self, reader: Reader, indexes: IndexSet, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied

    @classmethod
    def made(cls, parts: StageParts) -> Dedup:
        store = parts.needed_store
        return cls(store.reader, store.indexes, store.applied)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        await self._wait_for(events)
        news = [[_New(logged, record) for record in self._records(logged)] for logged in events]
        flat = [new for group in news for new in group]
        found = iter(await self._reader.run(lambda cursor: self._find(cursor, flat)) if flat else ())
        return [[self._similar(new, similar) for new in group if (similar := next(found))] for group in news]

    def _records(self, logged: LoggedEvent) -> list[similarity.EntityRecord]:
        return [
            similarity.EntityRecord(
                entity["id"], entity["label"], entity["text"], (entity.get("properties") or {}).get("category")
            )
            for entity in logged.event.data["entities"]
            if entity["label"] in self.labels
        ]

    async def _wait_for(self, events: Sequence[LoggedEvent]) -> None:
        """Until the records are applied, and their vectors too: the embed facts of the same memories."""
        await self.store_has(Freshness.after(logged.position for logged in events))
        if self._indexes.model is not None:
            # facts lie on the partition of their memories, and `extract` has just said how far it has read there
            sources = {Partition(MEMORY.name, logged.position.partition) for logged in events}
            memories = Freshness({at: self._applied.next_offset(at, "extract") for at in sources})
            await self.store_has(memories, ["embed"])

    def _similar(self, new: _New, found: Sequence[similarity.Similar]) -> Event:
        record, info = new.record, self._indexes.model
        similar = [
            {"record_id": f.record_id, "how": f.how, "cosine": None if f.cosine is None else round(f.cosine, 6)}
            for f in found
        ]
        data: dict[str, object] = {
            "record_id": record.record_id,
            "label": record.label,
            "category": record.category,
            "similar": similar,
        }
        fact = self.fact(new.logged, SIMILAR_FOUND, data | {"model_id": info.model_id if info else None})
        return fact.changed(id=f"{fact.id}/{record.record_id}")  # older than `about`, and ids on the log stay

    def _find(self, cursor: duckdb.DuckDBPyConnection, news: Sequence[_New]) -> list[list[similarity.Similar]]:
        """For each what it resembles, best first: a query for all, since each reads the whole of a table."""
        asked = [
            new.query_row(number, canonical_form=canonical_form(new.record.text)) for number, new in enumerate(news)
        ]
        earlier = _rows(cursor, _SAME_FORM, asked)
        cosines = self._near(cursor, {number: new for number, new in enumerate(news) if number not in earlier})
        near = [
            news[number].query_row(number, entity_id=record_id)
            for number, found in cosines.items()
            for record_id in found
        ]
        if near:
            earlier |= _rows(cursor, _NAMED, near)
        return [
            _chosen(new.record, earlier.get(number, ()), cosines.get(number, {})) for number, new in enumerate(news)
        ]

    def _near(self, cursor: duckdb.DuckDBPyConnection, news: Mapping[int, _New]) -> dict[int, dict[str, float]]:
        """The cosine of the nearest records of each, by record id; all at least SIMILAR_COSINE.

        Keys are the numbers of `news`.
        """
        model = self._indexes.model
        if model is None or not news:
            return {}
        own = {number: document_label(new.namespace, new.record.record_id) for number, new in news.items()}
        near = self._nearest(own.values(), self._indexes.space(model.space))
        others = sorted({other for found in near.values() for other, _ in found})
        if not others:
            return {}
        rows = self._indexes.records.documents.rows(cursor, others)
        names = {label: row.record_id for label, row in rows.items()}
        return {
            number: {names[other]: cosine for other, cosine in near.get(label, ()) if other in names and other != label}
            for number, label in own.items()
        }

    def _nearest(self, labels: Iterable[int], space: Space) -> dict[int, Matches]:
        """The nearest to each label that has a vector.

        Records of one memory often share their text: each vector is searched once, and the index is read once for all.
        """
        held = space.vectors(np.array(sorted(set(labels)), np.int64))
        different = {vector.tobytes(): vector for vector in held.values()}
        if not different:
            return {}
        found = space.nearest_to_each(np.stack(list(different.values())), POOL, similarity.SIMILAR_COSINE)
        near = dict(zip(different, found, strict=True))
        return {label: near[vector.tobytes()] for label, vector in held.items()}


def _rows(
    cursor: duckdb.DuckDBPyConnection, query: str, asked: Sequence[Mapping[str, Any]]
) -> dict[int, list[tuple[str, str]]]:
    """(record id, text) of what is found, in log order, by the number of what asked."""
    found: dict[int, list[tuple[str, str]]] = {}
    for number, record_id, text in execute(cursor, query, [orjson.dumps(asked).decode()]).fetchall():
        found.setdefault(number, []).append((record_id, text))
    return found


def _chosen(
    new: similarity.EntityRecord, earlier: Iterable[tuple[str, str]], cosines: Mapping[str, float]
) -> list[similarity.Similar]:
    candidates = [
        similarity.EntityRecord(record_id, new.label, text, new.category, cosines.get(record_id))
        for record_id, text in earlier
    ]
    return similarity.similar_records(new, candidates)[:CANDIDATES]
