"""The frame of a stage: facts and marks, retries, dead letters, the limit, and a redelivery that changes nothing."""

from __future__ import annotations

import pytest

from processors.embedding.hashing import HashingEmbedder
from processors.frame import stage as frame
from processors.frame.stage import Stage, StageParts, StageRunner, dependents, needed_by, stage_types
from processors.memory.stages.embed import Embed
from processors.talos.stages.dedup import Dedup
from processors.talos.stages.extract import Extract
from storage.applied import AppliedPositions
from streams.clock import SystemClock
from streams.codec import decode, encode
from streams.errors import EmbedderUnavailable, StageStopped, Unavailable
from streams.event_types.talos import ENTITIES_EXTRACTED
from streams.events import Event, LoggedEvent, wire_type
from streams.ids import derived_id
from streams.log.base import Log, Outgoing, Record
from streams.positions import Freshness, Partition, Position
from streams.progress import read_progress
from streams.topics import DERIVED, MEMORY
from tests.processors.harness import NOW, event, run_stage


class ListLog:
    """Keeps what is published."""

    def __init__(self):
        self.published: list[Outgoing] = []

    largest = Log.largest

    async def publish(self, records, *, timeout_s=5.0):
        self.published.extend(records)
        return [Position(record.topic, record.partition or 0, number) for number, record in enumerate(records)]

    def records(self, topic=DERIVED.name):
        found = [r for r in self.published if r.topic == topic]
        return [Record(r.topic, r.partition or 0, n, 0, r.key, r.value, r.headers) for n, r in enumerate(found)]


class Fragile(Stage):
    """Fails on the texts that it is told to, this many times."""

    name = "fragile"
    source = MEMORY
    accepts = frozenset({wire_type("talos.journal.written")})

    def __init__(self, **failures: int) -> None:
        self.failures = failures

    async def facts(self, events):
        for logged in events:
            text = logged.event.data["content"]
            if self.failures.get(text, 0) > 0:
                self.failures[text] -= 1
                raise RuntimeError(f"cannot digest {text}")
        return [
            [self.fact(e, ENTITIES_EXTRACTED, {"source_event_id": e.event.id, "entities": [], "relations": []})]
            for e in events
        ]


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(frame, "RETRY_DELAY_S", 0.0)


@pytest.fixture
def log():
    return ListLog()


def runner(stage, log):
    return StageRunner(stage, log, SystemClock())


def written(*texts, start=0):
    records = []
    for offset, text in enumerate(texts, start):
        outgoing = encode(
            MEMORY.name, event("talos.journal.written", {"content": text, "category": "insight"}, id=f"e-{text}")
        )
        records.append(Record(MEMORY.name, 3, offset, 0, outgoing.key, outgoing.value, outgoing.headers))
    return records


async def test_a_batch_becomes_one_record_with_its_facts_and_how_far_the_stage_has_come(log):
    await run_stage(runner(Extract(), log), written("a cache is stale", "a test lies"))
    [record] = log.records()
    assert record.partition == 3
    assert [logged.event.type for logged in decode(record)] == [ENTITIES_EXTRACTED] * 2
    assert read_progress(record) == ("extract", (Position(MEMORY.name, 3, 2),))


async def test_an_input_that_yields_nothing_still_marks_progress(log):
    other = encode(MEMORY.name, event("talos.session.closed", {"session_id": "2026-01-05-a"}))
    await run_stage(runner(Extract(), log), [Record(MEMORY.name, 0, 7, 0, other.key, other.value, other.headers)])
    [record] = log.records()
    assert decode(record) == []
    assert read_progress(record) == ("extract", (Position(MEMORY.name, 0, 8),))


async def test_poison_is_left_to_the_materialiser_and_does_not_stop_the_stage(log):
    bad = Record(MEMORY.name, 3, 0, 0, b"default", b"{", ())
    await run_stage(runner(Extract(), log), [bad, *written("fine", start=1)])
    assert len(decode(log.records()[0])) == 1
    assert log.records(MEMORY.dlq.name) == []


async def test_a_redelivery_in_other_batches_gives_the_same_facts(log):
    again = ListLog()
    await run_stage(runner(Extract(), log), written("one", "two", "three"))
    for record in written("one", "two", "three"):
        await run_stage(runner(Extract(), again), [record])
    first = {logged.key: logged.digest for record in log.records() for logged in decode(record)}
    second = {logged.key: logged.digest for record in again.records() for logged in decode(record)}
    assert first == second


async def test_a_failure_that_passes_is_retried_and_nobody_notices(log):
    stage = runner(Fragile(bad=2), log)
    await run_stage(stage, written("good", "bad"))
    assert sum(len(decode(record)) for record in log.records()) == 2
    assert (stage.buried, stage.failure) == (0, None)


async def test_an_event_that_always_fails_is_buried_with_its_bytes_and_the_partition_moves_on(log):
    stage = runner(Fragile(bad=99), log)
    records = written("good", "bad", "fine")
    await run_stage(stage, records)
    [letter] = log.records(MEMORY.dlq.name)
    headers = dict(letter.headers)
    assert (letter.value, headers["dlq.stage"], headers["dlq.attempt"]) == (records[1].value, b"fragile", b"3")
    assert b"cannot digest bad" in headers["dlq.error.message"]
    assert sum(len(decode(record)) for record in log.records()) == 2
    assert read_progress(log.records()[-1]) == ("fragile", (Position(MEMORY.name, 3, 3),))


async def test_when_everything_fails_the_stage_stops_rather_than_divert_everything(log):
    texts = [f"t{number}" for number in range(40)]
    stage = runner(Fragile(**dict.fromkeys(texts, 99)), log)
    with pytest.raises(StageStopped, match="20 records in a row"):
        await run_stage(stage, written(*texts))
    assert stage.failure is not None
    assert log.published == [], "nothing is published or acknowledged of a batch in which the stage stopped"


async def test_while_what_a_stage_needs_is_away_it_waits_and_buries_nothing(log):
    class Waiting(Fragile):
        absences = 30

        async def facts(self, events):
            if self.absences:
                self.absences -= 1
                raise EmbedderUnavailable("the model is loading")
            return await super().facts(events)

    stage = runner(Waiting(), log)
    await run_stage(stage, written(*(f"t{number}" for number in range(40))))
    assert (stage.buried, stage.failure, log.records(MEMORY.dlq.name)) == (0, None, [])
    assert sum(len(decode(record)) for record in log.records()) == 40


class Away(HashingEmbedder):
    """A model that answers nobody."""

    def encode(self, texts):
        raise EmbedderUnavailable("the model is away")


async def test_of_events_that_are_never_embedded_no_more_is_remembered_than_a_batch_can_hold(monkeypatch):
    monkeypatch.setattr("processors.memory.stages.embed.MAX_COUNTED_EVENTS", 3)
    stage = Embed(Away())
    for number in range(9):
        with pytest.raises(EmbedderUnavailable):
            await stage.facts(
                [logged for record in written(f"text {number}", start=number) for logged in decode(record)]
            )
    assert len(stage._failed) == 3


def test_every_stage_of_a_domain_is_found_after_those_that_it_needs():
    names = [kind.name for kind in stage_types()]
    assert sorted(names) == [
        "causes",
        "changes",
        "consolidate",
        "dedup",
        "embed",
        "extract",
        "patterns",
        "prune",
        "relate",
        "tensions",
    ]
    for kind in stage_types():
        assert all(names.index(needed) < names.index(kind.name) for needed in needed_by(kind))


def test_a_stage_knows_who_needs_its_facts_from_what_the_others_say():
    assert dependents("extract") == {"dedup", "patterns", "consolidate", "prune"}
    assert dependents("embed") == {"causes", "changes", "dedup", "patterns", "consolidate", "relate", "tensions"}
    assert dependents("tensions") == frozenset()


def test_a_process_without_a_store_runs_the_stages_that_need_none_and_makes_no_other():
    parts = StageParts(embedder=None)
    assert {stage.name for stage in parts.stages()} == {"embed", "extract"}
    assert parts.stage(Embed) is parts.stages()[0]
    with pytest.raises(RuntimeError, match="needs the store"):
        parts.stage(Dedup)


async def test_a_stage_whose_store_lags_says_so_in_the_one_sentence_and_hastens_only_what_a_caller_awaits(monkeypatch):
    monkeypatch.setattr("processors.frame.stage.STORE_WAIT_S", 0.01)
    applied = AppliedPositions()
    stage = Dedup(None, None, applied)  # type: ignore[arg-type]
    token, urgent = Freshness({Partition(MEMORY.name, 0): 1}), applied.urgent_wait()
    with pytest.raises(Unavailable, match="not caught up with the log; the stage dedup goes on once it has"):
        await stage.store_has(token)
    assert not urgent.done()
    with pytest.raises(Unavailable):
        await stage.store_has(token, patient=False)
    assert urgent.done()
    applied.advance({Partition(MEMORY.name, 0): 1}, {})
    await stage.store_has(token)


def test_facts_about_several_things_of_one_event_have_ids_of_their_own_that_do_not_change():
    logged = LoggedEvent(Event("e", "s", "t", "n", NOW, {}), Position(MEMORY.name, 0, 0), 0, 0, "k")
    stage = Extract()
    plain = stage.fact(logged, ENTITIES_EXTRACTED, {})
    ids = [stage.fact(logged, ENTITIES_EXTRACTED, {}, about=about).id for about in ((), ("a",), ("a", "b"))]
    assert ids == [plain.id, derived_id(plain.id, "a"), derived_id(plain.id, "a", "b")] and len(set(ids)) == 3
