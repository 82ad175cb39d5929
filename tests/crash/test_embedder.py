"""R16: the embedder is slow, raises or hangs.

Writes are applied all the same, and search answers from keywords and says so.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcp_ingress.door import Request, Visitor
from processors.embedding import time_limit
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Embedder
from processors.frame.stage import CONSECUTIVE_FAILURES
from processors.memory.stages.embed import encode_or_probe, encode_texts
from streams.errors import EmbedderUnavailable
from streams.positions import Freshness
from tests.patience import PATIENCE_S
from thalweg.control.search import search_node
from thalweg.process.node import Node
from thalweg.settings import Settings

pytestmark = [pytest.mark.timeout(300), pytest.mark.process]
LIMIT_S = 0.2
SLOW_S = 60.0
BESIDE_S = 20.0
"""Far less than the slow model takes for one text, far more than anything takes that does not wait for it."""


class Frail(HashingEmbedder):
    """The hashing embedder with a fault, which `mended` ends."""

    info = HashingEmbedder().info

    def __init__(self, fault: str) -> None:
        self._fault = fault
        self.mended = threading.Event()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if not self.mended.is_set():
            if self._fault == "raises":
                raise RuntimeError("out of memory")
            self.mended.wait(SLOW_S if self._fault == "slow" else None)
        return super().encode(texts)


class FrailNode(Node):
    """The whole node on a frail embedder."""

    frail: Frail

    def _load_embedder(self) -> Embedder:
        return self.frail


@pytest.fixture(params=["slow", "raises", "hangs"])
async def node(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[FrailNode]:
    monkeypatch.setattr(time_limit, "LIMIT_S", LIMIT_S)
    monkeypatch.setattr(time_limit.with_time_limit, "__defaults__", (LIMIT_S,))
    node = FrailNode(Settings(home=tmp_path / "home", embedder="hashing", partitions=2, behind_s=0.1))
    node.frail = Frail(request.param)
    await node.start()
    yield node
    node.frail.mended.set()
    await node.stop()


async def call(node: Node, tool: str, **arguments: Any) -> dict[str, Any]:
    answer = await node.running.door.call(Visitor(node.running.door.local), Request(tool, arguments))
    assert answer.body["success"], answer.body
    return answer.body


async def test_writes_are_applied_and_search_answers_from_keywords_until_the_embedder_is_mended(
    node: FrailNode,
) -> None:
    for number in range(5):
        began = time.monotonic()
        written = await call(
            node, "journal_write", content=f"I realized that the gearbox of case {number} whines.", category="insight"
        )
        assert await node.running.store.applied.wait(
            Freshness.from_json(written["freshness"]), timeout_s=BESIDE_S, stages=("extract",)
        )
        assert time.monotonic() - began < BESIDE_S
    for _ in range(3):
        began = time.monotonic()
        found = await call(node, "journal_query", query="gearbox whines")
        assert found["degraded"] and "embedder did not answer" in found["message"]
        assert len(found["results"]) >= 5
        assert time.monotonic() - began < BESIDE_S
    node.frail.mended.set()
    assert await node.running.store.applied.wait(
        Freshness.from_json(written["freshness"]), timeout_s=PATIENCE_S, stages=("embed",)
    )
    assert (await node.control.status()).to_json()["dead_letters"] == {}
    async with asyncio.timeout(PATIENCE_S):  # a model that is well may be late, too, where the limit is so short
        while "degraded" in await call(node, "journal_query", query="gearbox whines"):
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("node", ["raises"], indirect=True)
async def test_a_model_that_fails_on_every_text_ends_no_node_and_buries_nothing(
    node: FrailNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processors.frame.stage.LONGEST_DELAY_S", 0.2)
    for number in range(2 * CONSECUTIVE_FAILURES):
        written = await call(
            node, "journal_write", content=f"I realized that valve {number} leaks.", category="insight"
        )
    token = Freshness.from_json(written["freshness"])
    assert await node.running.store.applied.wait(token, timeout_s=PATIENCE_S, stages=("extract",))
    await node.running.lag.observe()  # from here on the stage is seen to be behind
    assert not await node.running.store.applied.wait(token, timeout_s=1.0, stages=("embed",))
    async with asyncio.timeout(PATIENCE_S):  # the stage may just be about to ask the model for the first time
        while not is_said((report := (await node.control.status()).to_json())["problems"]):
            await asyncio.sleep(0.05)
    assert (report["dead_letters"], report["stages"]["embed"]["failure"]) == ({}, None)
    assert all(not task.done() for task in node._critical)
    node.frail.mended.set()
    assert await node.running.store.applied.wait(token, timeout_s=PATIENCE_S, stages=("embed",))
    [vectors] = await node.running.store.reader.run(
        lambda cursor: cursor.execute("SELECT count(*) FROM embeddings").fetchone()
    )
    assert vectors >= 2 * CONSECUTIVE_FAILURES


def is_said(problems: Sequence[str]) -> bool:
    return any("stage embed waits: The model" in problem and "fails on every text" in problem for problem in problems)


@pytest.mark.parametrize("node", ["hangs"], indirect=True)
async def test_a_model_that_is_switched_to_is_given_its_limit_of_time_too(node: FrailNode) -> None:
    node.running.use(node.frail)
    began = time.monotonic()
    assert (await call(node, "journal_query", query="gearbox"))["degraded"]
    assert (await search_node(node.running, {"query": "gearbox"}))["degraded"]
    assert time.monotonic() - began < BESIDE_S


@pytest.mark.parametrize("node", ["hangs"], indirect=True)
async def test_a_search_that_waits_for_vectors_which_do_not_come_says_that_it_is_older(
    node: FrailNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("thalweg.process.running.FRESHNESS_WAIT_S", 0.3)
    await call(node, "journal_write", content="The valve leaks.", category="insight")
    assert (await search_node(node.running, {"query": "valve", "freshness": "now"}))["stale"] is True
    assert "stale" not in await search_node(node.running, {"query": "valve"})
    node.frail.mended.set()
    monkeypatch.setattr("thalweg.process.running.FRESHNESS_WAIT_S", PATIENCE_S)
    assert "stale" not in await search_node(node.running, {"query": "valve", "freshness": "now"})


class Picky(HashingEmbedder):
    """Cannot take one text."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if any("unspeakable" in text for text in texts):
            raise ValueError("no token")
        return super().encode(texts)


def test_a_text_on_which_only_the_model_fails_is_told_from_a_model_that_fails() -> None:
    with pytest.raises(ValueError, match="no token"):
        encode_or_probe(encode_texts, Picky(), ["unspeakable"])
    with pytest.raises(EmbedderUnavailable, match=r"every text .*out of memory"):
        encode_or_probe(encode_texts, Frail("raises"), ["unspeakable"])
