"""The Collector's topics on a whole node: found when they come late, and their dead letters replayed or refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from processors.telemetry import record_formats
from streams.log.base import Outgoing
from streams.positions import Freshness, Partition
from streams.topics import OTLP_TOPICS, Topic
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.process import node as program
from thalweg.process.node import Node
from thalweg.settings import Settings
from thalweg.terminal.topics import create_topics

LOGS = Topic("otlp_logs", "the Collector's logs", partitions=2)
BROKEN = b"\x0a\xff\xff broken"


def logs(text: str) -> bytes:
    record = {"timeUnixNano": "1763000000000000000", "severityText": "WARN", "body": {"stringValue": text}}
    return orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})


@pytest.fixture
async def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    monkeypatch.setattr(program, "LOOK_S", 0.02)
    node = Node(
        Settings(home=migrated_home(tmp_path / "home"), embedder="none", partitions=2, otlp_topics=True), stages=False
    )
    await node.start()
    yield node
    await node.stop()


async def export(node: Node, value: bytes) -> None:
    """What the Collector sends, applied."""
    positions = await node.log.publish([Outgoing(LOGS.name, None, value)])
    assert await node.running.store.applied.wait(Freshness.after(positions), timeout_s=SOON_S)


async def letters(node: Node, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(SOON_S):
        while len((answer := await node.control.handle({"command": "dlq_list"}))["dead_letters"]) < count:
            await asyncio.sleep(0.01)
    found: list[dict[str, Any]] = answer["dead_letters"]
    return found


async def rows(node: Node) -> list[Any]:
    return await node.running.store.reader.run(
        lambda cursor: cursor.execute("SELECT body FROM otel_logs ORDER BY ALL").fetchall()
    )


async def test_what_is_missing_of_the_collectors_topics_is_said_until_it_is_there(node: Node) -> None:
    [absent] = (await node.control.status()).to_json()["problems"]
    assert absent == (
        "THALWEG_OTLP_TOPICS is set, but the topics otlp_spans, otlp_logs, otlp_metrics are not on the broker: "
        "`thalweg topics create --otlp` makes what is missing"
    )
    await node.log.create_topics([LOGS])
    assert set(await asyncio.to_thread(create_topics, node.settings, otlp=True)) == {"otlp_spans", "otlp_metrics"}
    async with asyncio.timeout(SOON_S):
        while len(set(OTLP_TOPICS) & set(node.running.store.followed)) < len(OTLP_TOPICS):
            await asyncio.sleep(0.01)
    report = (await node.control.status()).to_json()
    assert report["problems"] == [] and report["topics"]["otlp_spans"]["state"] == "ok"


async def test_topics_that_the_collector_makes_later_are_read_from_their_first_record_and_count_in_status(
    node: Node,
) -> None:
    assert LOGS.name not in node.running.store.followed
    await node.log.create_topics([LOGS])
    await export(node, logs("late"))
    assert await rows(node) == [('"late"',)]
    async with asyncio.timeout(SOON_S):
        while LOGS.name not in node.running.store.followed:
            await asyncio.sleep(0.01)
    report = (await node.control.status()).to_json()
    assert report["topics"][LOGS.name] == {"state": "ok", "applied": 1, "lag": 0, "oldest_s": 0.0}


async def test_a_dead_letter_of_the_collector_is_replayed_and_lands_once_after_a_fix(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(raw: bytes, **context: Any) -> list[Any]:
        raise RuntimeError("a defect of the reader")

    await node.log.create_topics([LOGS])
    with monkeypatch.context() as defect:
        defect.setattr(record_formats, "read_request", broken)
        await export(node, logs("mended"))
    [letter] = await letters(node, 1)
    assert (letter["topic"], letter["dlq_topic"], await rows(node)) == (LOGS.name, "thalweg.telemetry.v1.dlq", [])
    for _ in range(2):
        replayed = await node.control.handle({"command": "dlq_replay", "ids": [letter["dead_letter_id"]]})
        assert (replayed["ok"], replayed["replayed"]) == (True, 1)
        assert await node.running.store.applied.wait(Freshness.from_json(replayed["freshness"]), timeout_s=SOON_S)
    assert await rows(node) == [('"mended"',)]
    assert (await node.control.handle({"command": "dlq_list"}))["total"] == 1


async def test_a_dead_letter_whose_topic_is_gone_is_left_with_a_sentence_and_the_others_are_replayed(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    await node.log.create_topics([LOGS])
    await export(node, BROKEN)
    await node.log.publish([Outgoing("thalweg.telemetry.v1", b"default", b"no event", ())])
    await letters(node, 2)
    # as a log to which the files were moved
    monkeypatch.setattr(node.log, "end_offsets", without(LOGS.name, node.log.end_offsets))
    replayed = await node.control.handle({"command": "dlq_replay"})
    assert (replayed["ok"], replayed["replayed"], replayed["left"]) == (True, 1, 1)
    assert "otlp_logs, which is not on this log" in replayed["reasons"][0]


def without(name: str, end_offsets: Any) -> Any:
    async def remaining(topics: Iterable[str]) -> dict[Partition, int]:
        ends: dict[Partition, int] = await end_offsets(topics)
        return {at: end for at, end in ends.items() if at.topic != name}

    return remaining
