"""Which of the earlier records a batch of new ones resembles, by form and by vector, and what is said of it."""

from __future__ import annotations

import asyncio

import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.memory.vector_facts import embedded_by, encode_vector
from processors.talos.stages.dedup import Dedup
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from streams.codec import decode, encode
from streams.event_types.memory import EMBEDDED
from streams.event_types.talos import ENTITIES_EXTRACTED
from streams.events import Event
from streams.positions import Partition
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import NOW, Store

MEMORIES = Partition(MEMORY.name, 0)


class Compared:
    """A store with its indexes, to which entities are added, and the stage that compares them."""

    def __init__(self, home):
        self.store, self.embedder, self.applied = Store(), HashingEmbedder(), AppliedPositions()
        self.reader = Reader(self.store.database, threads=1)
        self.indexes = IndexSet(home / "indexes", self.store.database.cursor, self.embedder.info)
        self.indexes.open({})
        self.stage = Dedup(self.reader, self.indexes, self.applied)

    def close(self):
        self.reader.close()
        self.indexes.close(save=False)

    def extracted(self, *entities, label="Observation", namespace="default"):
        """The logged event of these (id, text), applied with their vectors."""
        found, vectors = self.facts(*entities, label=label, namespace=namespace)
        record = self._apply(found)
        self._apply(vectors)
        [logged] = decode(record)
        return logged

    def facts(self, *entities, label="Observation", namespace="default"):
        """What `extract` and `embed` publish about these (id, text)."""
        data = {
            "source_event_id": "e",
            "entities": [
                {"id": name, "label": label, "text": text, "properties": {}, "confidence": 0.9}
                for name, text in entities
            ],
            "relations": [],
        }
        vectors = self.embedder.encode([text for _, text in entities])
        pairs = zip(entities, vectors, strict=True)
        embedded = embedded_by(self.embedder.info) | {
            "vectors": [{"record_id": name, "vector": encode_vector(row)} for (name, _), row in pairs]
        }
        identity = entities[0][0]
        return (
            Event(identity, "test", ENTITIES_EXTRACTED, namespace, NOW, data),
            Event(f"{identity}/v", "test", EMBEDDED, namespace, NOW, embedded),
        )

    def _apply(self, event):
        record = self.store.record(encode(DERIVED.name, event))
        self.commit(record, embedded=1)
        return record

    def commit(self, record, *, embedded):
        """Apply the record, and let `embed` have come so far in the memories."""
        indexed = self.store.apply(record).indexed
        self.indexes.apply(indexed.documents, indexed.vectors)
        reached = {Partition(DERIVED.name, 0): record.offset + 1}
        self.applied.advance(reached, {("embed", MEMORIES): embedded})

    async def similar(self, *events):
        """record -> (other record, how) of what the stage says about these events."""
        facts = [fact for found in await self.stage.facts(events) for fact in found]
        return {
            fact.data["record_id"]: [(one["record_id"], one["how"]) for one in fact.data["similar"]] for fact in facts
        }


@pytest.fixture
def compared(tmp_path):
    compared = Compared(tmp_path)
    yield compared
    compared.close()


async def test_of_what_resembles_nothing_nothing_is_said(compared):
    assert (
        await compared.similar(
            compared.extracted(("a", "the linter hangs")), compared.extracted(("b", "rain fell all day"))
        )
        == {}
    )


async def test_a_batch_is_compared_with_what_came_before_each_of_it(compared):
    first = compared.extracted(("a", "The linter hangs on every commit."))
    second = compared.extracted(("b", "the linter hangs on every commit"))
    third = compared.extracted(("c", "on every commit the linter hangs"))
    found = await compared.similar(first, second, third)
    assert found == {"b": [("a", "canonical_form")], "c": [("a", "cosine"), ("b", "cosine")]}


async def test_records_of_one_memory_that_share_their_text_are_each_compared(compared):
    compared.extracted(("a", "the cache is stale again"), label="Insight")
    compared.extracted(("b", "again the cache is stale"))
    both = compared.extracted(("c", "stale is the cache again"), ("d", "stale is the cache again"))
    assert await compared.similar(both) == {"c": [("b", "cosine")], "d": [("b", "cosine")]}


async def test_what_another_namespace_has_said_is_the_same_as_nothing(compared):
    compared.extracted(("a", "The linter hangs."), ("b", "hangs the linter often"), namespace="north")
    assert await compared.similar(compared.extracted(("c", "the linter hangs"), ("d", "often hangs the linter"))) == {}
    assert await compared.similar(compared.extracted(("e", "the linter hangs"))) == {"e": [("c", "canonical_form")]}


async def test_a_record_that_comes_again_finds_what_it_found_the_first_time(compared):
    first = compared.extracted(("a", "The linter hangs."))
    second = compared.extracted(("b", "the linter hangs"))
    once = await compared.similar(first, second)
    again = compared.extracted(("a", "The linter hangs.")), compared.extracted(("b", "the linter hangs"))
    assert once == await compared.similar(*again) == {"b": [("a", "canonical_form")]}


async def test_a_record_is_compared_once_it_is_in_the_store_and_its_vector_too(compared):
    compared.extracted(("a", "the cache is stale again"))
    found, vectors = (
        compared.store.record(encode(DERIVED.name, fact)) for fact in compared.facts(("b", "again the cache is stale"))
    )
    compared.applied.advance({MEMORIES: 2}, {("extract", MEMORIES): 2})
    comparing = asyncio.ensure_future(compared.similar(*decode(found)))
    await asyncio.wait({comparing}, timeout=0.05)
    assert not comparing.done(), "the record is not in the store yet"
    compared.commit(found, embedded=1)
    await asyncio.wait({comparing}, timeout=0.05)
    assert not comparing.done(), "its vector is not in the store yet"
    compared.commit(vectors, embedded=2)
    assert await comparing == {"b": [("a", "cosine")]}


async def test_the_opposite_is_not_the_same(compared):
    compared.extracted(("a", "the cache is stale after each of the many long builds of today"))
    assert (
        await compared.similar(
            compared.extracted(("b", "the cache is not stale after each of the many long builds of today"))
        )
        == {}
    )
