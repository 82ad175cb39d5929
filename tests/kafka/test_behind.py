"""A node that is behind a real Kafka says so, also to a reader who has written nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import Principal, Request, Visitor
from streams.backlog import LATE_S
from streams.log.base import Record
from streams.positions import Freshness
from tests.kafka.rig.broker import Broker
from tests.patience import PATIENCE_S
from thalweg.control.search import search_node
from thalweg.process.node import Node
from thalweg.settings import Settings

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


async def test_a_node_behind_its_kafka_says_how_many_records_and_seconds_it_lacks_and_what_is_not_embedded(
    own_broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Node(
        Settings(home=tmp_path / "home", broker=own_broker.url, role="ingress", embedder="hashing", partitions=2)
    )
    await node.start()
    try:
        may_apply, apply = asyncio.Event(), node.running.store.materialiser.apply

        async def held(records: Sequence[Record]) -> Any:
            await may_apply.wait()
            return await apply(records)

        monkeypatch.setattr(node.running.store.materialiser, "apply", held)
        local, reader = Visitor(node.running.door.local), Visitor(Principal("reader", "elsewhere"))
        for number in range(3):
            said = {"content": f"Gauge {number} drifts.", "category": "insight"}
            written = (await node.running.door.call(local, Request("journal_write", said))).body
        async with asyncio.timeout(PATIENCE_S + LATE_S):
            while (behind := (await query(node, reader)).get("behind")) is None or behind["records"] < 3:
                await asyncio.sleep(0.1)
        assert behind["seconds"] >= LATE_S
        assert (await node.control.snapshots.get(0.0))[1]["behind"]["records"] >= 3
        may_apply.set()
        assert await node.running.store.applied.wait(Freshness.from_json(written["freshness"]), timeout_s=PATIENCE_S)
        assert (await search_node(node.running, {"query": "gauge drifts"}))["embedding_behind"] == 3, "no worker runs"
        async with asyncio.timeout(PATIENCE_S):
            while "behind" in (found := await query(node, local)):
                await asyncio.sleep(0.1)
        assert (found["embedding_behind"], len(found["results"])) == (3, 3)
    finally:
        await node.stop()


async def query(node: Node, visitor: Visitor) -> dict[str, Any]:
    return (await node.running.door.call(visitor, Request("journal_query", {"query": "gauge drifts"}))).body
