"""A long text on the embedded log: found by words and by meaning, and no start writes again what is there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from streams.clock import SystemClock
from streams.codec import encode
from streams.events import Event, wire_type
from streams.log import open_log
from streams.topics import MEMORY
from tests.node_process import Client, NodeProcess
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

PROSE = "The committee discussed the minutes of the former meeting and adjourned until the following week. "
LONG = PROSE * 12_000 + "At last a capybara."
"""1.1 MiB: more passages than have a vector."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    node = NodeProcess(tmp_path / "node").start()
    yield node
    if node.is_alive():
        node.kill()


async def publish(node: NodeProcess, text: str) -> None:
    log = open_log(f"sqlite://{node.home}/log.db")
    await log.start()
    memory = Event(
        "long",
        "producer",
        wire_type("talos.journal.written"),
        "default",
        SystemClock().now(),
        {"content": text, "category": "insight"},
    )
    await log.publish([encode(MEMORY.name, memory)], timeout_s=30)
    await log.stop()


def wait_until_whole(node: NodeProcess) -> None:
    deadline = time.monotonic() + 2 * PATIENCE_S
    wanted = "SELECT (SELECT sum(passages) FROM embeddings), (SELECT count(*) FROM passages)"
    while (counts := node.sql(wanted)[0])[0] is None or counts[0] != counts[1]:
        assert time.monotonic() < deadline and node.is_alive(), (counts, node.log_tail())
        time.sleep(0.1)


def rows(node: NodeProcess) -> list[tuple[object, ...]]:
    tables = ("events", "embeddings", "passages", "documents", "duplicates", "dead_letters")
    return [
        node.sql(f"SELECT '{table}', count(*) FROM {table} WHERE topic <> 'thalweg.invocations.v1'")[0]
        for table in tables
    ]


def log_bytes(node: NodeProcess) -> int:
    return sum((node.home / name).stat().st_size for name in ("log.db", "log.db-wal") if (node.home / name).exists())


async def test_five_starts_on_a_log_with_a_long_text_add_nothing_to_log_or_store_and_it_is_found(
    node: NodeProcess,
) -> None:
    await publish(node, LONG)
    with closing(Client(node.home)) as client:  # others do not wait for it
        assert client.insist("journal_write", {"content": "An otter swims.", "category": "insight"}, "other")["success"]
    wait_until_whole(node)
    node.settle()
    assert node.stop() == 0, node.log_tail()
    node.start()  # its first start writes what a first start does
    node.settle()
    before = rows(node)
    assert node.stop() == 0
    size = log_bytes(node)
    for _ in range(5):
        node.start()
        status = node.settle()
        assert (status["status"], status["spaces"]["partial"], status["spaces"]["failed"]) == ("green", 0, 0), status
        assert rows(node) == before
        assert node.stop() == 0, node.log_tail()
    assert log_bytes(node) <= size + 64 * 1024
    stored = sum(
        file.stat().st_size for file in node.home.rglob("*") if file.is_file() and "snapshots" not in file.parts
    )
    assert stored < 20 * len(LONG.encode()), stored
    node.start()
    with closing(Client(node.home)) as client:
        for question in ("capybara", "the committee adjourned"):
            deadline = time.monotonic() + PATIENCE_S
            while not any(
                "committee" in str(hit) for hit in client.call("journal_query", {"query": question})["results"]
            ):
                assert time.monotonic() < deadline, question
                time.sleep(0.1)
