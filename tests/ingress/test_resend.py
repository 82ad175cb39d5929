"""A request that is sent again after midnight has one effect, and its answer names the rows that are there."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import REQUEST_ID_META, Request, Visitor
from mcp_ingress.services import Limits
from streams.positions import Freshness
from tests.patience import SOON_S
from thalweg.process.node import Node
from thalweg.settings import Settings

BEFORE_MIDNIGHT = datetime(2026, 1, 5, 23, 59, 59, tzinfo=UTC)
WRITES: list[tuple[str, dict[str, Any]]] = [
    ("journal_write", {"content": "I realized that days end.", "category": "insight"}),
    ("friction_log", {"description": "the day ended in mid-call", "category": "tooling"}),
    ("session_open", {"session_id": "2026-01-05-late", "goal": "finish before midnight"}),
]


class WallClock:
    """Wall time that is set; the monotonic clock goes on."""

    def __init__(self) -> None:
        self.time = BEFORE_MIDNIGHT

    def now(self) -> datetime:
        return self.time

    def monotonic(self) -> float:
        return time.monotonic()


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


async def started(home: Path, clock: WallClock) -> Node:
    """A node that is never in a hurry: what it answers does not depend on how fast this machine is."""
    node = Node(Settings(home=home, embedder="none", partitions=2), clock)
    await node.start()
    node.running.services.limits = Limits(SOON_S, SOON_S, SOON_S)
    tools = {name: replace(tool, timeout_s=2 * SOON_S) for name, tool in node.running.door.inventory.tools.items()}
    node.running.door.inventory = replace(node.running.door.inventory, tools=tools)
    return node


@pytest.fixture
async def node(tmp_path: Path, clock: WallClock) -> AsyncIterator[Node]:
    node = await started(tmp_path / "home", clock)
    yield node
    await node.stop()


async def call(node: Node, tool: str, arguments: dict[str, Any], request_id: str) -> dict[str, Any]:
    answer = await node.running.door.call(
        Visitor(node.running.door.local), Request(tool, arguments, {REQUEST_ID_META: request_id})
    )
    assert answer.body["success"], answer.body
    return answer.body


def named(answer: dict[str, Any]) -> dict[str, Any]:
    """What an answer names: all of it but how far the log reached."""
    return {name: value for name, value in answer.items() if name != "freshness"}


async def entries(node: Node, answer: dict[str, Any]) -> set[str]:
    assert await node.running.store.applied.wait(
        Freshness.from_json(answer["freshness"]), timeout_s=SOON_S, stages=("extract",)
    )
    query = "SELECT entry_id FROM talos_journal UNION SELECT entity_id FROM entities"
    return {row[0] for row in await node.running.store.reader.run(lambda cursor: cursor.execute(query).fetchall())}


async def test_a_resend_after_midnight_gives_the_answer_of_the_first(node: Node, clock: WallClock) -> None:
    for number, (tool, arguments) in enumerate(WRITES):
        clock.time = BEFORE_MIDNIGHT
        first = await call(node, tool, arguments, f"r{number}")
        clock.time += timedelta(seconds=2)
        assert named(await call(node, tool, arguments, f"r{number}")) == named(first)


async def test_after_a_restart_the_resend_names_the_row_that_the_log_holds(tmp_path: Path, clock: WallClock) -> None:
    before = await started(tmp_path / "home", clock)
    first = await call(before, *WRITES[0], "r1")
    await before.stop()
    for store in (tmp_path / "home").glob("thalweg.duckdb*"):
        store.unlink()  # the node has to read the log again before it can know
    clock.time += timedelta(seconds=2)
    after = await started(tmp_path / "home", clock)
    try:
        again = await call(after, *WRITES[0], "r1")
        assert again["entry_id"] == first["entry_id"]
        assert again["entry_id"].startswith("journal-2026-01-05-")
        assert again["entry_id"] in await entries(after, again)
        assert await after.running.store.reader.run(
            lambda cursor: cursor.execute("SELECT count(*) FROM talos_journal").fetchall()
        ) == [(1,)]
        assert await after.running.store.reader.run(
            lambda cursor: cursor.execute("SELECT DISTINCT same_body FROM duplicates").fetchall()
        ) == [(True,)]
    finally:
        await after.stop()


async def test_another_request_after_midnight_is_of_the_new_day(node: Node, clock: WallClock) -> None:
    first = await call(node, *WRITES[0], "r1")
    clock.time += timedelta(seconds=2)
    second = await call(node, *WRITES[0], "r2")
    assert second["entry_id"].startswith("journal-2026-01-06-")
    assert {first["entry_id"], second["entry_id"]} <= await entries(node, second)
