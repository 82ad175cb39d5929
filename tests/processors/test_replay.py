"""Dead letters on a whole node: after a defect is mended, a replayed letter lands, and once, however often it is replayed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from processors.reducers import frame
from streams.codec import encode
from streams.log.base import Outgoing
from streams.positions import Freshness
from streams.topics import MEMORY, TELEMETRY
from tests.patience import SOON_S
from tests.processors.harness import batch_of, event, opened
from tests.schema import migrated_home
from thalweg.control import handle
from thalweg.node import Node
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
    assert await node.applied.wait(Freshness.after(await node.log.publish(records)), timeout_s=SOON_S, stages=("extract",))


async def replay(node: Node, *ids: str) -> dict[str, Any]:
    answer = await handle(node, {"command": "dlq_replay", "ids": list(ids)})
    assert answer["ok"], answer
    assert await node.applied.wait(Freshness.from_json(answer["freshness"]), timeout_s=SOON_S, stages=("extract",))
    return answer


async def rows(node: Node, query: str) -> list[Any]:
    return await node.reader.run(lambda cursor: cursor.execute(query).fetchall())


async def letters(node: Node, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(SOON_S):
        while len((answer := await handle(node, {"command": "dlq_list"}))["dead_letters"]) < count:
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

    monkeypatch.setattr("processors.batch.reducers", lambda: {**real, WRITTEN: frame.Reducer(fail, real[WRITTEN].reads)})


async def test_after_the_reducer_is_mended_a_replayed_letter_lands_once_with_its_facts_and_outcome(node: Node) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        defect(2, monkeypatch)
        await publish(node, *(encode(MEMORY.name, written(number)) for number in (1, 2, 3)))
        [letter] = await letters(node, 1)
        assert await rows(node, "SELECT event_id FROM talos_journal ORDER BY ALL") == [("e1",), ("e3",)]
    for _ in range(3):
        assert (await replay(node, letter["dead_letter_id"]))["replayed"] == 1
    assert await rows(node, "SELECT event_id FROM talos_journal ORDER BY ALL") == [("e1",), ("e2",), ("e3",)]
    assert await rows(node, "SELECT status, count(*) FROM outcomes GROUP BY ALL") == [("applied", 3)]
    assert await rows(node, "SELECT count(*), count(DISTINCT entity_id) FROM entities WHERE label = 'Insight'") == [(3, 3)]
    assert await rows(node, "SELECT count(*) FROM dead_letters") == [(1,)]


async def test_before_the_fix_a_replay_gives_another_letter_and_no_row(node: Node) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        defect(1, monkeypatch)
        await publish(node, encode(MEMORY.name, written(1)))
        [letter] = await letters(node, 1)
        await replay(node, letter["dead_letter_id"])
        await letters(node, 2)
    assert await rows(node, "SELECT count(*) FROM talos_journal") == [(0,)]
    await replay(node)
    assert await rows(node, "SELECT event_id FROM talos_journal") == [("e1",)]


async def test_many_letters_are_replayed_in_the_order_of_the_log_by_few_readers(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("thalweg.control.LETTERS", 4)
    poison = [Outgoing(MEMORY.name, b"default", b"{", encode(MEMORY.name, written(number)).headers) for number in range(2)]
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr("processors.batch.reducers", lambda: {WRITTEN: frame.Reducer(lambda logged, rows: 1 / 0)})  # type: ignore[arg-type,return-value]
        await publish(node, *(encode(MEMORY.name, written(number)) for number in range(10)), *poison)
        await letters(node, 12)
    opened_readers = []
    reader = node.log.reader

    async def counted(start: Any) -> Any:
        opened_readers.append(start)
        return await reader(start)

    monkeypatch.setattr(node.log, "reader", counted)
    answer = await handle(node, {"command": "dlq_replay", "ids": []})
    assert answer["ok"] and answer["replayed"] == 12, answer
    assert await node.applied.wait(Freshness.from_json(answer["freshness"]), timeout_s=SOON_S)
    assert await rows(node, 'SELECT event_id FROM talos_journal ORDER BY "offset"') == [(f"e{number}",) for number in range(10)]
    assert len(opened_readers) == 3, "twelve letters, four at once"


async def test_of_a_record_of_many_observations_only_the_one_that_failed_lands_when_it_is_replayed(node: Node) -> None:
    seen = [event("session.event", {"session_id": "s-1", "event_type": "user", "text": f"text {n}"}, id=f"o{n}") for n in range(4)]
    real, kind = frame.reducers(), seen[0].type

    def fail(logged: Any, rows: Any) -> Any:
        if logged.event.id == "o2":
            raise KeyError("a defect")
        return real[kind].apply(logged, rows)

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("processors.batch.reducers", lambda: {**real, kind: frame.Reducer(fail, real[kind].reads)})
        await publish(node, batch_of(seen, topic=TELEMETRY.name))
        [letter] = await letters(node, 1)
    await replay(node, letter["dead_letter_id"])
    assert await rows(node, "SELECT event_id FROM session_events ORDER BY ALL") == [(f"o{n}",) for n in range(4)]


async def test_after_a_stage_is_mended_the_letter_that_it_buried_gives_its_facts_once(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    [extract] = [runner.stage for runner in node.runners if runner.stage.name == "extract"]
    real = extract.facts

    async def fail(events: Any) -> Any:
        if any(logged.event.id == "e2" for logged in events):
            raise RuntimeError("a defect")
        return await real(events)

    monkeypatch.setattr("processors.stages.stage.RETRY_DELAY_S", 0.0)
    with pytest.MonkeyPatch.context() as defective:
        defective.setattr(extract, "facts", fail)
        await publish(node, *(encode(MEMORY.name, written(number)) for number in (1, 2)))
        [letter] = await letters(node, 1)
        assert letter["stage"] == "extract"
    for _ in range(2):
        await replay(node, letter["dead_letter_id"])
    assert await rows(node, "SELECT event_id FROM talos_journal ORDER BY ALL") == [("e1",), ("e2",)]
    assert await rows(node, "SELECT count(*), count(DISTINCT entity_id) FROM entities WHERE label = 'Insight'") == [(2, 2)]


async def test_a_session_that_was_opened_again_meanwhile_refuses_the_replayed_request_and_stays(node: Node) -> None:
    kind = "thalweg.talos.session.opened.v1"
    real = frame.reducers()

    def fail(logged: Any, rows: Any) -> Any:
        raise KeyError("a defect")

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("processors.batch.reducers", lambda: {**real, kind: frame.Reducer(fail, real[kind].reads)})
        await publish(node, encode(MEMORY.name, opened("2026-01-05-a", goal="first", id="first")))
        [letter] = await letters(node, 1)
    await publish(node, encode(MEMORY.name, opened("2026-01-05-a", goal="second", id="second")))
    await replay(node, letter["dead_letter_id"])
    assert await rows(node, "SELECT goal FROM talos_sessions") == [("second",)]
    assert await rows(node, "SELECT request_id, status FROM outcomes ORDER BY 2") == [("second", "applied"), ("first", "refused")]
