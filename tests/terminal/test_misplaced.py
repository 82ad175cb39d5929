"""A producer with another partitioner than Kafka's own is named by `status` and `doctor`, also after a restart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from processors.frame import materialiser
from processors.frame.batch import Reduced
from streams.codec import encode
from streams.events import Event, wire_type
from streams.partitioning import partition_for
from streams.positions import Freshness
from streams.topics import MEMORY
from tests.patience import SOON_S
from tests.schema import NOW, migrated_home
from thalweg.doctor.checks import Unsound
from thalweg.doctor.surroundings import _producers
from thalweg.process.node import Node
from thalweg.settings import Settings
from thalweg.status import health


async def started(home: Path) -> Node:
    node = Node(Settings(home=home, embedder="none", partitions=4), stages=False)
    await node.start()
    return node


async def write(node: Node, source: str, *places: int) -> None:
    """A journal entry on each of these partitions, counted from the right one."""
    right = partition_for(b"team", 4)
    entry = {"content": "The gauge drifts.", "category": "insight"}
    events = [
        Event(f"{source}{number}", source, wire_type("talos.journal.written"), "team", NOW, entry)
        for number in range(len(places))
    ]
    records = [
        encode(MEMORY.name, event, partition=(right + place) % 4) for event, place in zip(events, places, strict=True)
    ]
    token = Freshness.after(await node.log.publish(records))
    assert await node.running.store.applied.wait(token, timeout_s=SOON_S)


async def test_a_producer_with_another_partitioner_is_named_with_the_remedy_and_its_records_are_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = await started(migrated_home(tmp_path / "home"))
    try:
        await write(node, "/right", 0, 0)
        assert (await node.control.status()).to_json()["misplaced"] == []
        assert await asyncio.to_thread(_producers, node.settings.home) == "every record lies where its key belongs"
        await write(node, "/wrong", 1, 0, 2)
        report = (await node.control.status()).to_json()
        assert report["misplaced"] == [{"source": "/wrong", "records": 2, "is_recent": True}]
        [problem] = report["problems"]
        assert (
            problem.startswith("the producer /wrong puts records on other partitions than their keys' (2 so far)")
            and "murmur2" in problem
        )
        with pytest.raises(Unsound, match=r"the producer /wrong .* docs/producers\.md"):
            await asyncio.to_thread(_producers, node.settings.home)
        [(entries,)] = await node.running.store.reader.run(
            lambda cursor: cursor.execute("SELECT count(*) FROM talos_journal").fetchall()
        )
        assert entries == 5
        monkeypatch.setattr(health, "RECENT_S", 0.0)  # an hour later
        assert (await node.control.status()).to_json()["status"] == "green"
    finally:
        await node.stop()


async def test_the_count_outlives_a_restart_and_the_status_is_green_again(tmp_path: Path) -> None:
    node = await started(migrated_home(tmp_path / "home"))
    await write(node, "/wrong", 1, 3)
    await node.stop()
    node = await started(tmp_path / "home")
    try:
        report = (await node.control.status()).to_json()
        assert (report["status"], report["misplaced"]) == (
            "green",
            [{"source": "/wrong", "records": 2, "is_recent": False}],
        )
        said = await asyncio.to_thread(_producers, node.settings.home)
        assert said == "2 records of /wrong lie on other partitions than their keys', none of them new"
    finally:
        await node.stop()


async def test_of_many_such_producers_the_last_are_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(materialiser, "NAMED_SOURCES", 2)
    node = await started(migrated_home(tmp_path / "home"))
    try:
        for source in "abac":
            node.running.store.materialiser._count([], Reduced(misplaced={source}))
        assert [*node.running.store.materialiser.misplaced_at] == ["a", "c"]
    finally:
        await node.stop()
