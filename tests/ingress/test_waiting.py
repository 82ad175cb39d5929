"""Waiting for accepted writes, on a node in process: each caller is answered in its time, and told what is late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from uuid import UUID

import pytest

import thalweg.process.running
from mcp_ingress.door import Request, Visitor
from mcp_ingress.services import Limits
from streams.log import Outgoing
from streams.positions import NOW, Freshness, Partition, Position
from streams.topics import MEMORY
from thalweg.control.requests import ask
from thalweg.process.node import Node
from thalweg.settings import Settings


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(Settings(home=tmp_path / "home", embedder="none", partitions=2))
    await node.start()
    yield node
    await node.stop()


async def test_records_of_calls_that_are_not_on_the_log_in_time_are_lacking_and_whoever_waited_is_told(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_publish, publish = asyncio.Event(), node.log.publish

    async def held(records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        await may_publish.wait()
        return await publish(records, timeout_s=timeout_s)

    monkeypatch.setattr(node.log, "publish", held)
    monkeypatch.setattr(thalweg.process.running, "RECORDS_WAIT_S", 0.01)
    await node.running.door.call(Visitor(node.running.door.local), Request("ping", {}))
    assert node.running.door.publisher.waiting == 1
    assert not await node.running.has_reached(NOW)
    monkeypatch.setattr(thalweg.process.running, "RECORDS_WAIT_S", 30.0)
    may_publish.set()
    assert await node.running.has_reached(NOW)
    counted = await node.running.store.reader.run(
        lambda cursor: cursor.execute("SELECT count(*) FROM invocations").fetchall()
    )
    assert counted == [(1,)]


async def test_records_of_calls_that_come_later_are_not_waited_for(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    publisher, publish = node.running.door.publisher, node.log.publish
    visitor = Visitor(node.running.door.local)

    async def always_another(records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        positions = await publish(records, timeout_s=timeout_s)
        await node.running.door.call(visitor, Request("ping", {}))
        return positions

    monkeypatch.setattr(node.log, "publish", always_another)
    await node.running.door.call(visitor, Request("ping", {}))
    assert await publisher.flushed(30.0) and publisher.waiting


async def test_what_is_not_found_while_the_callers_writes_are_under_way_is_refused_as_stale(node: Node) -> None:
    visitor = Visitor(node.running.door.local)
    await node.running.door.call(visitor, Request("journal_write", {"content": "It turned.", "category": "insight"}))
    unknown = Request(
        "tension_resolve", {"tension_id": str(UUID(int=4, version=4)), "resolution": "none", "action": "keep_both"}
    )
    limits, node.running.services.limits = node.running.services.limits, Limits(read_wait_s=0.0)
    visitor.connection.last_writes = Freshness({Partition(MEMORY.name, 0): 1_000_000})  # as if more were under way
    refused = await node.running.door.call(visitor, unknown)
    assert (refused.body["error_code"], refused.body.get("stale")) == ("TENSION_NOT_FOUND", True)
    visitor.connection.last_writes, node.running.services.limits = Freshness(), limits
    refused = await node.running.door.call(visitor, unknown)
    assert (refused.body["error_code"], refused.body.get("stale")) == ("TENSION_NOT_FOUND", None)


@pytest.mark.process
async def test_a_wait_ends_in_the_time_of_who_asked(node: Node) -> None:
    never = {MEMORY.name: {"0": 1_000_000}}
    assert await asyncio.to_thread(ask, node.settings.home, "wait", freshness=never, timeout_s=5.0) == {
        "applied": False
    }
