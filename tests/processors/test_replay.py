"""Dead letters on a whole node.

After a defect is mended, a replayed letter lands, and once, however often it is replayed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from processors.frame import reducer as frame
from streams.codec import encode
from streams.dlq import REPLAY_OF, DeadLetter, bury, exhume
from streams.log.base import Outgoing, Record
from streams.positions import Freshness
from streams.topics import MEMORY, TELEMETRY
from tests.patience import SOON_S
from tests.processors.harness import Store, batch_of, event, opened
from tests.schema import NOW, migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings

WRITTEN = "thalweg.talos.journal.written.v1"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=2))
    await node.start()
    yield node
    await node.stop()


def written(number: int) -> Any:
    return event("talos.journal.written", {"content": f"I realized {number}.", "category": "insight"}, id=f"e{number}")


async def publish(node: Node, *records: Outgoing) -> None:
    assert await node.running.store.applied.wait(
        Freshness.after(await node.log.publish(records)), timeout_s=SOON_S, stages=("extract",)
    )


async def replay(node: Node, *ids: str) -> dict[str, Any]:
    answer = await node.control.handle({"command": "dlq_replay", "ids": list(ids)})
    assert answer["ok"], answer
    assert await node.running.store.applied.wait(
        Freshness.from_json(answer["freshness"]), timeout_s=SOON_S, stages=("extract",)
    )
    return answer


async def rows(node: Node, query: str) -> list[Any]:
    return await node.running.store.reader.run(lambda cursor: cursor.execute(query).fetchall())


async def letters(node: Node, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(SOON_S):
        while len((answer := await node.control.handle({"command": "dlq_list"}))["dead_letters"]) < count:
            await asyncio.sleep(0.01)
    found: list[dict[str, Any]] = answer["dead_letters"]
    return found


def defect(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The reducer of journal entries fails on the entry of that number."""
    real = frame.reducers()

    def fail(logged: Any, rows: Any) -> Any:
        if logged.event.id == f"e{number}":
            raise KeyError("a defect")
        return real[WRITTEN].apply(logged, rows)

    monkeypatch.setattr(
        "processors.frame.batch.reducers", lambda: {**real, WRITTEN: frame.Reducer(fail, real[WRITTEN].reads)}
    )


async def test_after_the_reducer_is_mended_a_replayed_letter_lands_once_with_its_facts_and_outcome(node: Node) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        defect(2, monkeypatch)
        await publish(node, *(encode(MEMORY.name, written(number)) for number in (1, 2, 3)))
        [letter] = await letters(node, 1)
        assert await rows(node, "SELECT event_id FROM talos_journal ORDER BY ALL") == [("e1",), ("e3",)]
    for _ in range(3):  # by its id as often as one likes
        assert (await replay(node, letter["dead_letter_id"]))["replayed"] == 1
    assert await rows(node, "SELECT event_id FROM talos_journal ORDER BY ALL") == [("e1",), ("e2",), ("e3",)]
    assert await rows(node, "SELECT status, count(*) FROM outcomes GROUP BY ALL") == [("applied", 3)]
    assert await rows(node, "SELECT count(*), count(DISTINCT entity_id) FROM entities WHERE label = 'Insight'") == [
        (3, 3)
    ]
    assert await rows(node, "SELECT count(*) FROM dead_letters") == [(1,)]


def test_a_replay_that_failed_again_is_marked_with_its_first_letter_and_no_other() -> None:
    store = Store()
    original = store.record(encode(MEMORY.name, written(1)))

    def replayed(record: Record) -> Outgoing:
        letter = DeadLetter(record.position, "materialise", "g", 1, "KeyError", "a defect", NOW)
        return exhume(store.record(bury(record, letter)))

    once = replayed(original)
    twice = replayed(store.record(once))
    assert [name for name, _ in once.headers] == [*(name for name, _ in original.headers), REPLAY_OF]
    assert (twice.headers, twice.value) == (once.headers, original.value)


async def states(node: Node, **filters: Any) -> list[tuple[str, str]]:
    """(id, state) of the letters that fit."""
    answer = await node.control.handle({"command": "dlq_list", **filters})
    assert answer["total"] == len(answer["dead_letters"])
    return [(letter["dead_letter_id"], letter["state"]) for letter in answer["dead_letters"]]


async def test_a_replay_that_fails_again_is_the_same_letter_and_is_solved_by_the_next(node: Node) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        defect(1, monkeypatch)
        await publish(node, encode(MEMORY.name, written(1)))
        [letter] = await letters(node, 1)
        assert (await replay(node))["replayed"] == 1
        async with asyncio.timeout(SOON_S):
            while (await states(node)) == [(letter["dead_letter_id"], "replayed")]:
                await asyncio.sleep(0.01)  # until the second failure is a row, too
        [(again, state)] = await states(node)
        assert state == "replayed" and again != letter["dead_letter_id"]
        assert (await replay(node))["replayed"] == 0, "`--all` takes the new ones: nothing has changed since"
    assert await rows(node, "SELECT count(*) FROM talos_journal") == [(0,)]
    assert (await replay(node, letter["dead_letter_id"]))["replayed"] == 1, (
        "a letter keeps the ids under which it failed before"
    )
    assert await rows(node, "SELECT event_id FROM talos_journal") == [("e1",)]
    assert await states(node) == [(again, "solved")]


async def test_replaying_all_again_publishes_nothing(node: Node) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        defect(1, monkeypatch)
        await publish(node, encode(MEMORY.name, written(1)))
        await letters(node, 1)
    assert [(await replay(node))["replayed"] for _ in range(3)] == [1, 0, 0]
    assert [state for _, state in await states(node)] == ["solved"]
    assert await rows(node, f"SELECT count(*) FROM duplicates WHERE topic = '{MEMORY.name}'") == [(0,)]
    assert (await node.control.status()).to_json()["dead_letters"] == {"solved": 1}


async def test_a_dropped_letter_counts_no_more_and_keeps_its_reason(node: Node) -> None:
    headers = encode(MEMORY.name, written(1)).headers
    for namespace in (b"default", b"other"):
        await publish(node, Outgoing(MEMORY.name, namespace, b"{", headers))
    await letters(node, 2)
    without = await node.control.handle({"command": "dlq_drop", "ids": [], "because": "  "})
    assert not without["ok"] and "--because" in without["error"]
    answer = await node.control.handle({"command": "dlq_drop", "namespace": "other", "because": "a load test"})
    assert answer["ok"] and answer["dropped"] == 1
    assert await node.running.store.applied.wait(Freshness.from_json(answer["freshness"]), timeout_s=SOON_S)
    assert len(await states(node, states=["new"])) == 1
    [(dropped, _)] = await states(node, states=["dropped"])
    assert await rows(node, "SELECT drop_reason FROM dead_letter_states WHERE state = 'dropped'") == [("a load test",)]
    assert (await node.control.status()).to_json()["dead_letters"] == {"new": 1, "dropped": 1}
    for command in ("dlq_replay", "dlq_drop"):
        refused = await node.control.handle({"command": command, "ids": [dropped], "because": "again"})
        assert not refused["ok"] and dropped in refused["error"]


async def test_letters_are_chosen_by_time_namespace_source_type_and_reason(node: Node) -> None:
    bad = encode(MEMORY.name, written(1))
    other = event("talos.friction.logged", {"description": "slow", "category": "tooling"}, id="f").changed(
        source="urn:other"
    )
    await publish(node, Outgoing(MEMORY.name, b"default", b"{", bad.headers))
    await publish(node, Outgoing(MEMORY.name, b"team", b'{"category": "tooling"}', encode(MEMORY.name, other).headers))
    found = {letter["namespace"]: letter for letter in await letters(node, 2)}
    assert found["team"]["source"] == "urn:other" and found["team"]["event_type"] == "thalweg.talos.friction.logged.v1"
    for filters in (
        {"namespace": "team"},
        {"source": "urn:other"},
        {"type": "thalweg.talos.friction.logged.v1"},
        {"reason": "DESCRIPTION"},
        {"since": "2020-01-01", "namespace": "team"},
    ):
        assert [letter_id for letter_id, _ in await states(node, **filters)] == [found["team"]["dead_letter_id"]], (
            filters
        )
    assert await states(node, until="2020-01-01") == []
    wrong = await node.control.handle({"command": "dlq_list", "since": "yesterday"})
    assert not wrong["ok"] and "--since" in wrong["error"] and "2026-01-05" in wrong["error"]


async def test_one_bad_observation_is_buried_alone_and_the_others_are_applied(node: Node) -> None:
    seen = [
        event("session.event", {"session_id": "s-1", "event_type": "user", "text": f"text {n}"}, id=f"o{n}")
        for n in range(3)
    ]
    whole = batch_of(seen, topic=TELEMETRY.name)
    items = orjson.loads(whole.value or b"")
    del items[1]["data"]["session_id"]
    await publish(node, Outgoing(whole.topic, whole.key, orjson.dumps(items), whole.headers))
    [letter] = await letters(node, 1)
    assert (
        letter["observation"] == 1
        and letter["error_message"].startswith("Observation 1: ")
        and "session_id" in letter["error_message"]
    )
    assert await rows(node, "SELECT event_id FROM session_events ORDER BY ALL") == [("o0",), ("o2",)]
    shown = await node.control.handle({"command": "dlq_show", "id": letter["dead_letter_id"]})
    assert orjson.loads(shown["value"]) == [items[1]]


async def test_many_letters_are_replayed_in_the_order_of_the_log_by_few_readers(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.control.dead_letters.LETTERS", 4)
    poison = [
        Outgoing(MEMORY.name, b"default", b"{", encode(MEMORY.name, written(number)).headers) for number in range(2)
    ]
    with pytest.MonkeyPatch.context() as broken:
        # type: ignore[arg-type,return-value]
        broken.setattr("processors.frame.batch.reducers", lambda: {WRITTEN: frame.Reducer(lambda logged, rows: 1 / 0)})
        await publish(node, *(encode(MEMORY.name, written(number)) for number in range(10)), *poison)
        await letters(node, 12)
    opened_readers = []
    reader = node.log.reader

    async def counted(start: Any) -> Any:
        opened_readers.append(start)
        return await reader(start)

    monkeypatch.setattr(node.log, "reader", counted)
    answer = await node.control.handle({"command": "dlq_replay", "ids": []})
    assert answer["ok"] and answer["replayed"] == 12, answer
    assert await node.running.store.applied.wait(Freshness.from_json(answer["freshness"]), timeout_s=SOON_S)
    assert await rows(node, 'SELECT event_id FROM talos_journal ORDER BY "offset"') == [
        (f"e{number}",) for number in range(10)
    ]
    assert len(opened_readers) == 3, "twelve letters, four at once"


async def test_of_a_record_of_many_observations_only_the_one_that_failed_lands_when_it_is_replayed(node: Node) -> None:
    seen = [
        event("session.event", {"session_id": "s-1", "event_type": "user", "text": f"text {n}"}, id=f"o{n}")
        for n in range(4)
    ]
    real, kind = frame.reducers(), seen[0].type

    def fail(logged: Any, rows: Any) -> Any:
        if logged.event.id == "o2":
            raise KeyError("a defect")
        return real[kind].apply(logged, rows)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            "processors.frame.batch.reducers", lambda: {**real, kind: frame.Reducer(fail, real[kind].reads)}
        )
        await publish(node, batch_of(seen, topic=TELEMETRY.name))
        [letter] = await letters(node, 1)
    await replay(node, letter["dead_letter_id"])
    assert await rows(node, "SELECT event_id FROM session_events ORDER BY ALL") == [(f"o{n}",) for n in range(4)]


async def test_after_a_stage_is_mended_the_letter_that_it_buried_gives_its_facts_once(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    [extract] = [runner.stage for runner in node.running.runners if runner.stage.name == "extract"]
    real = extract.facts

    async def fail(events: Any) -> Any:
        if any(logged.event.id == "e2" for logged in events):
            raise RuntimeError("a defect")
        return await real(events)

    monkeypatch.setattr("processors.frame.stage.RETRY_DELAY_S", 0.0)
    with pytest.MonkeyPatch.context() as defective:
        defective.setattr(extract, "facts", fail)
        await publish(node, *(encode(MEMORY.name, written(number)) for number in (1, 2)))
        [letter] = await letters(node, 1)
        assert letter["stage"] == "extract"
    for _ in range(2):
        await replay(node, letter["dead_letter_id"])
    assert await rows(node, "SELECT event_id FROM talos_journal ORDER BY ALL") == [("e1",), ("e2",)]
    assert await rows(node, "SELECT count(*), count(DISTINCT entity_id) FROM entities WHERE label = 'Insight'") == [
        (2, 2)
    ]


async def test_a_session_that_was_opened_again_meanwhile_refuses_the_replayed_request_and_stays(node: Node) -> None:
    kind = "thalweg.talos.session.opened.v1"
    real = frame.reducers()

    def fail(logged: Any, rows: Any) -> Any:
        raise KeyError("a defect")

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            "processors.frame.batch.reducers", lambda: {**real, kind: frame.Reducer(fail, real[kind].reads)}
        )
        await publish(node, encode(MEMORY.name, opened("2026-01-05-a", goal="first", id="first")))
        [letter] = await letters(node, 1)
    await publish(node, encode(MEMORY.name, opened("2026-01-05-a", goal="second", id="second")))
    await replay(node, letter["dead_letter_id"])
    assert await rows(node, "SELECT goal FROM talos_sessions") == [("second",)]
    assert await rows(node, "SELECT request_id, status FROM outcomes ORDER BY 2") == [
        ("second", "applied"),
        ("first", "refused"),
    ]
