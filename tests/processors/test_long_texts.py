"""A long text is embedded in records that a log takes, in any order and again; what is refused is buried once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Encoded, Pieces
from processors.frame.stage import ENVELOPE_BYTES, Stage, StageRunner
from processors.memory.reembedding import (
    Missing,
    fact_of_failure,
    facts_of_passages,
    failed_labels,
    missing_labels,
    missing_passages,
    partial_labels,
    read_texts,
    slices,
)
from processors.memory.stages.embed import Embed, encode_passages
from processors.talos.stages.extract import Extract
from storage.search.records.passages import EMBEDDED_PASSAGES, FIRST_PASSAGES, TOKEN_PASSAGES, split_passages
from storage.search.vectors.token_vectors import Tokens, unit
from streams.clock import SystemClock
from streams.codec import decode, encode
from streams.dlq import read_letter
from streams.errors import RecordRefused
from streams.event_types.memory import EMBEDDED, EMBEDDING_FAILED
from streams.log.base import MAX_RECORD_BYTES, RECORD_BYTES, Log, Outgoing, Record, record_bytes
from streams.positions import Position
from streams.progress import read_progress
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import Store, event, run_stage

PROSE = "The committee discussed the minutes of the former meeting and adjourned until the following week. "
LONG = PROSE * 400
SPACE = HashingEmbedder().info.space


class LimitedLog:
    """Keeps what is published; a record of more than `limit` bytes is refused with all that are published with it."""

    check = Log.check

    def __init__(self, limit: int = MAX_RECORD_BYTES, told: int = MAX_RECORD_BYTES) -> None:
        self.limit, self.told, self.published = limit, told, list[Outgoing]()

    def largest(self, topic: str) -> int:
        return self.told

    async def publish(self, records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        if any(record_bytes(record) > self.limit and not record.topic.endswith(".dlq") for record in records):
            raise RecordRefused(f"At most {self.limit} bytes.")
        self.published.extend(records)
        return []

    def of(self, topic: str) -> list[Record]:
        return [
            Record(r.topic, r.partition or 0, n, 0, r.key, r.value, r.headers)
            for n, r in enumerate(self.published)
            if r.topic == topic
        ]


def journal(text: str, id: str = "e1") -> Outgoing:
    return encode(MEMORY.name, event("talos.journal.written", {"content": text, "category": "insight"}, id=id))


async def derived(stage: Stage, log: LimitedLog, *records: Record) -> StageRunner:
    runner = StageRunner(stage, log, SystemClock())  # type: ignore[arg-type]
    await run_stage(runner, records)
    return runner


def of_one(store: Store, event_id: str = "e1") -> tuple[int, str]:
    [(label, record_id)] = store.sql(
        "SELECT d.label, d.record_id FROM documents d JOIN talos_journal j ON d.record_id = j.entry_id "
        "WHERE j.event_id = ?",
        event_id,
    )
    return label, record_id


def complete(store: Store, label: int, embedder: HashingEmbedder, most: int = 10_000) -> None:
    """Embed what the text lacks, as the node does."""
    cursor = store.database.cursor()
    [missing] = read_texts(cursor, np.array([label]))
    lacking = missing_passages(cursor, label, embedder.info.space, split_passages(missing.text))[:most]
    facts = facts_of_passages(
        embedder.info, "b", missing, encode_passages(embedder, missing.text, lacking), RECORD_BYTES
    )
    store.publish(*facts, topic=DERIVED.name)


async def test_each_record_of_a_long_text_is_far_below_a_brokers_default_limit_and_the_last_carries_the_mark() -> None:
    log, store = LimitedLog(), Store()
    texts = [store.record(journal(LONG + str(number), f"e{number}")) for number in range(8)]
    await derived(Embed(HashingEmbedder(4096)), log, *texts)
    records = log.of(DERIVED.name)
    assert len(records) > 2
    assert all(record_bytes(Outgoing(r.topic, r.key, r.value, r.headers)) <= RECORD_BYTES for r in records)
    assert [read_progress(record) for record in records[:-1]] == [None] * (len(records) - 1)
    assert read_progress(records[-1]) == ("embed", (Position(MEMORY.name, 0, 8),))


@pytest.mark.parametrize("stage", [Embed(HashingEmbedder()), Extract()])
async def test_a_topic_that_takes_less_gets_smaller_records_with_the_same_rows(stage: Stage) -> None:
    stores = []
    text = ". ".join(
        f"I believe rule {number} and I decided {number} because I realized {'so ' * 300}" for number in range(40)
    )
    for told in (MAX_RECORD_BYTES, 24 * 1024):
        log, store = LimitedLog(told, told), Store()
        record = store.record(journal(text))
        store.apply(record)
        await derived(stage, log, record)
        store.apply(*(store.record(outgoing) for outgoing in log.published))
        assert len(log.published) > 1 or told == MAX_RECORD_BYTES
        query = "SELECT label, record_id FROM embeddings UNION ALL SELECT label, record_id FROM passages"
        stores.append((sorted(store.sql(query)), sorted(store.sql("SELECT entity_id, text FROM entities"))))
    assert stores[0] == stores[1]
    assert any(stores[0])


@settings(max_examples=12)
@given(st.randoms(use_true_random=False))
def test_the_parts_of_a_long_text_come_in_any_order_and_again_and_are_applied_once(chance: Any) -> None:
    store = shared()
    parts = [record for record in PARTS for _ in range(2)]
    chance.shuffle(parts)
    store.database.cursor().execute("DELETE FROM embeddings; DELETE FROM passages; DELETE FROM events")
    fresh = Store(store.database)
    for part in parts:
        fresh.apply(fresh.record(part))
    assert fresh.sql("SELECT passages FROM embeddings") == [(FIRST_PASSAGES + 10,)]
    assert fresh.sql("SELECT number FROM passages ORDER BY number") == [
        (number,) for number in range(FIRST_PASSAGES + 10)
    ]


PARTS: list[Outgoing] = []


def shared(_known: list[Store] = []) -> Store:  # noqa: B006  one store for all examples
    if not _known:
        store, embedder = Store(), HashingEmbedder()
        text = next(PROSE * n for n in range(1, 999) if len(split_passages(PROSE * n)) == FIRST_PASSAGES + 10)
        memory = event("talos.journal.written", {"content": text, "category": "insight"})
        missing = Missing("default", "entry", text, memory.time.replace(tzinfo=None))
        passages = split_passages(text)
        for first, last in pairwise([0, 5, 9, 20, FIRST_PASSAGES + 10]):
            encoded = encode_passages(embedder, text, passages[first:last])
            PARTS.extend(
                encode(DERIVED.name, fact) for fact in facts_of_passages(embedder.info, "b", missing, encoded, 12_000)
            )
        whole = {"record_id": "entry", "vector": encoded[0]["vector"], "passages": len(passages)}
        data = {"space": SPACE, "model_id": embedder.info.model_id, "dim": 384, "trained": False, "vectors": [whole]}
        PARTS.append(encode(DERIVED.name, event("memory.embedded", data, id="whole")))
        _known.append(store)
    return _known[0]


async def test_the_beginning_comes_at_once_the_rest_is_missing_until_it_is_there_and_only_it_is_embedded() -> None:
    embedder, log, store = HashingEmbedder(), LimitedLog(12_000, 12_000), Store()
    record = store.record(journal(LONG))
    store.apply(record)
    await derived(Embed(embedder), log, record)
    parts = [store.record(outgoing) for outgoing in log.published]
    lost = next(
        part
        for part in parts
        if not any("passages" in item for fact in decode(part) for item in fact.event.data["vectors"])
    )
    gone = [
        item["passage"]["number"] for fact in decode(lost) for item in fact.event.data["vectors"] if "passage" in item
    ]
    store.apply(*(part for part in parts if part is not lost))
    label, _ = of_one(store)
    cursor, passages = store.database.cursor(), split_passages(LONG)
    assert store.sql("SELECT passages FROM embeddings WHERE label = ?", label) == [(len(passages),)]
    assert label not in missing_labels(cursor, SPACE)[0] and label in partial_labels(cursor, SPACE)
    lacking = [passage.number for passage in missing_passages(cursor, label, SPACE, passages)]
    assert gone and lacking == [*gone, *range(FIRST_PASSAGES, len(passages))], "what came is not embedded again"
    complete(store, label, embedder, most=len(gone) + 1)
    assert label in partial_labels(cursor, SPACE)
    complete(store, label, embedder)
    assert label not in partial_labels(cursor, SPACE) and missing_passages(cursor, label, SPACE, passages) == []


async def test_of_a_book_so_many_passages_have_vectors_and_so_many_of_these_token_vectors() -> None:
    passages = split_passages(PROSE * 20_000)
    assert len(passages) > EMBEDDED_PASSAGES
    found = missing_passages(Store().database.cursor(), 1, SPACE, passages)
    assert found == passages[:EMBEDDED_PASSAGES]
    tokened = _Tokens()
    encoded = encode_passages(tokened, PROSE * 20_000, passages[TOKEN_PASSAGES - 2 : TOKEN_PASSAGES + 2])
    assert ["tokens" in one for one in encoded] == [True, True, False, False]


class _Tokens(HashingEmbedder):
    """Gives each text one token."""

    def encode_tokens(self, texts: Sequence[str]) -> Any:
        token = Tokens(np.ones(1, np.uint16), unit(np.ones((1, 128), np.float32)), np.ones(1, bool))
        return Encoded(self.encode(texts), [token] * len(texts))

    def piece_starts(self, texts: Sequence[str]) -> list[Pieces]:
        return [Pieces(np.ones(1, np.uint16), np.zeros(1, np.int64))] * len(texts)


async def test_an_event_whose_facts_the_log_refuses_is_buried_once_and_the_others_and_the_mark_are_not() -> None:
    log, store = LimitedLog(limit=30_000), Store()  # the limit was lowered: the log does not know yet
    records = [store.record(journal(text, f"e{n}")) for n, text in enumerate(["short", LONG, "fine"])]
    store.apply(*records)
    runner = await derived(Embed(HashingEmbedder()), log, *records)
    [letter] = log.of(MEMORY.dlq.name)
    assert (letter.value, read_letter(letter).stage, runner.buried) == (records[1].value, "embed", 1)
    assert read_letter(letter).error_message == "At most 30000 bytes."
    facts = [logged.event for record in log.of(DERIVED.name) for logged in decode(record)]
    assert [fact.type for fact in facts] == [EMBEDDED, EMBEDDING_FAILED, EMBEDDED]
    assert read_progress(log.of(DERIVED.name)[-1]) == ("embed", (Position(MEMORY.name, 0, 3),))
    store.apply(*(store.record(outgoing) for outgoing in log.published))
    cursor = store.database.cursor()
    failed = store.sql("SELECT reason FROM embedding_failures")
    assert failed and set(failed) == {("At most 30000 bytes.",)}
    label, _ = of_one(store)
    assert label not in missing_labels(cursor, SPACE)[0], "a start does not try it again"


async def test_a_text_on_which_the_model_fails_is_no_text_that_a_start_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Picky(HashingEmbedder):
        def encode(self, texts: Sequence[str]) -> Any:
            if any("unspeakable" in text for text in texts):
                raise ValueError("no such word")
            return super().encode(texts)

    monkeypatch.setattr("processors.frame.stage.RETRY_DELAY_S", 0.0)
    log, store = LimitedLog(), Store()
    records = [store.record(journal("unspeakable", "e0")), store.record(journal("fine", "e1"))]
    store.apply(*records)
    await derived(Embed(Picky()), log, *records)
    store.apply(*(store.record(outgoing) for outgoing in log.published))
    label, record_id = of_one(store, "e0")
    assert label not in missing_labels(store.database.cursor(), SPACE)[0]
    assert ("ValueError: no such word",) in store.sql(
        "SELECT reason FROM embedding_failures WHERE record_id = ?", record_id
    )


def test_a_vector_that_comes_later_ends_a_failure() -> None:
    embedder, store = HashingEmbedder(), Store()
    store.publish(event("talos.journal.written", {"content": "the river bends", "category": "insight"}))
    label, record_id = of_one(store)
    cursor = store.database.cursor()
    [missing] = read_texts(cursor, np.array([label]))
    assert label in missing_labels(cursor, SPACE)[0]
    store.publish(fact_of_failure(embedder.info, "b", missing, "refused"), topic=DERIVED.name)
    assert failed_labels(cursor, SPACE).tolist() == [label]
    assert label not in missing_labels(cursor, SPACE)[0]
    encoded = encode_passages(embedder, missing.text, [type(split_passages(LONG)[0])(0, 0, 15)])[0]["vector"]
    data = {
        "space": SPACE,
        "model_id": "m",
        "dim": 384,
        "trained": False,
        "vectors": [{"record_id": record_id, "vector": encoded}],
    }
    store.publish(event("memory.embedded", data, id="later"), topic=DERIVED.name)
    assert failed_labels(cursor, SPACE).tolist() == []


def test_a_slice_of_texts_is_bounded_in_texts_and_in_characters() -> None:
    store = Store()
    texts = [*(f"short {number}" for number in range(70)), "x" * 300_000, "y" * 300_000]
    entities = [{"id": f"f{number}", "label": "Friction", "text": text} for number, text in enumerate(texts)]
    data = {"source_event_id": "e1", "entities": entities, "relations": []}
    store.publish(event("talos.entities.extracted", data), topic=DERIVED.name)
    cursor = store.database.cursor()
    labels, _ = missing_labels(cursor, SPACE)
    cut = slices(cursor, labels)
    assert sorted(label for some in cut for label in some.tolist()) == labels.tolist()
    assert max(map(len, cut)) <= 64
    lengths = dict(cursor.execute("SELECT label, length(text) FROM documents").fetchall())
    assert sum(any(lengths[label] > 256 * 1024 for label in some.tolist()) and len(some) == 1 for some in cut) == 2


def test_what_a_fact_may_have_leaves_room_for_its_envelope() -> None:
    assert Stage.largest + ENVELOPE_BYTES == RECORD_BYTES <= 1024 * 1024 // 2
