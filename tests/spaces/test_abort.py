"""A space that is being built can be given up at any moment, also while its model hangs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from mcp_ingress.door import Request, Visitor
from streams.positions import Freshness
from tests.patience import PATIENCE_S
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings


@pytest_asyncio.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="hashing", partitions=2))
    await node.start()
    yield node
    await node.stop()


async def asked(node: Node, command: str, **more: Any) -> dict[str, Any]:
    answer = await node.control.handle({"command": command, **more})
    assert answer["ok"], answer
    return answer


async def test_dropping_a_space_ends_its_building_while_the_model_hangs(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Request("journal_write", {"content": "The gauge drifts at night.", "category": "insight"})
    written = (await node.running.door.call(Visitor(node.running.door.local), entry)).body
    token = Freshness.from_json(written["freshness"])
    assert await node.running.store.applied.wait(token, timeout_s=PATIENCE_S, stages=("embed",))
    begun, goes_on = threading.Event(), threading.Event()

    def hang(*arguments: Any) -> None:
        begun.set()
        goes_on.wait()

    monkeypatch.setattr("thalweg.spaces.filling.encode_texts", hang)
    try:
        async with asyncio.timeout(PATIENCE_S):
            space = (await asked(node, "reembed", model="hashing-16"))["space"]
            assert await asyncio.to_thread(begun.wait, PATIENCE_S)
            building = (await asked(node, "spaces"))["building"]
            assert building["space"] == space and building["done"] == 0 < building["total"]
            assert (await asked(node, "drop_spaces", space=space))["dropped"] == [space]
            while (report := await asked(node, "spaces"))["building"]:
                await asyncio.sleep(0.02)
    finally:
        goes_on.set()
    assert report["problem"] is None and report["live"] == "text/hashing-384"
