"""What a read says that it lacks: vectors that are not there yet, and what the node has not applied of the log."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mcp_ingress.door import Principal, Request, Visitor
from mcp_ingress.services import Limits
from processors.embedding.hashing import HashingEmbedder
from processors.embedding.model import Embedder
from processors.inner_voice.config import InnerVoiceConfig
from streams.backlog import LATE_S, Backlog
from streams.log.base import Record
from streams.positions import Freshness, Partition
from streams.topics import MEMORY
from tests.patience import PATIENCE_S
from thalweg.control.search import search_node, why_node
from thalweg.process.node import Node
from thalweg.settings import Settings

pytestmark = pytest.mark.process

FOREVER_S = 10 * PATIENCE_S
SEARCHES = {
    "journal_query": {"query": "gearbox whines"},
    "belief_query": {"query": "gearbox whines"},
    "hybrid_search": {"query_text": "gearbox whines"},
}


class Slow(HashingEmbedder):
    """The hashing embedder: it encodes queries at once, and no journal entry until `goes_on` is set."""

    info = HashingEmbedder().info

    def __init__(self) -> None:
        self.goes_on = threading.Event()
        self.goes_on.set()

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        if any("realized" in text for text in texts):
            self.goes_on.wait(FOREVER_S)
        return super().encode(texts)


class SlowNode(Node):
    """The whole node on a slow embedder."""

    slow: Slow

    def _load_embedder(self, name: str | None = None) -> Embedder:
        return self.slow


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[SlowNode]:
    node = SlowNode(Settings(home=tmp_path / "home", embedder="hashing", partitions=2))
    node.slow = Slow()
    await node.start()
    yield node
    node.slow.goes_on.set()
    await node.stop()


async def call(node: Node, tool: str, visitor: Visitor | None = None, **arguments: Any) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE_S):
        return (
            await node.running.door.call(visitor or Visitor(node.running.door.local), Request(tool, arguments))
        ).body


async def write(node: Node, number: int, visitor: Visitor) -> Freshness:
    written = await call(
        node, "journal_write", visitor, content=f"I realized that gearbox {number} whines.", category="insight"
    )
    return Freshness.from_json(written["freshness"])


async def is_embedded(node: Node, token: Freshness) -> bool:
    return await node.running.store.applied.wait(token, timeout_s=PATIENCE_S, stages=("extract", "embed"))


async def test_a_search_waits_for_its_callers_words_and_says_how_many_writes_are_not_found_by_meaning_yet(
    node: SlowNode,
) -> None:
    visitor, limits = Visitor(node.running.door.local), node.running.services.limits
    assert limits.vector_wait_s == Settings().vector_wait_s == 0.15
    assert await is_embedded(node, await write(node, 0, visitor))
    node.slow.goes_on.clear()
    # a search that waited this long for vectors would never answer
    node.running.services.limits = replace(limits, read_wait_s=FOREVER_S)
    for number in range(1, 4):
        token = await write(node, number, visitor)
    found = await call(node, "journal_query", visitor, query="gearbox whines", entity_types=["JournalEntry"])
    assert found["embedding_behind"] == 3
    assert not {"stale", "degraded", "behind"} & set(found)
    assert {result["content"] for result in found["results"]} == {
        f"I realized that gearbox {number} whines." for number in range(4)
    }
    searched = await search_node(node.running, {"query": "gearbox whines", "kinds": ["JournalEntry"]})
    assert searched["embedding_behind"] == 3
    assert sum("vector" in hit["sides"] for hit in searched["hits"]) == 1, "what is embedded is found by meaning too"
    for tool, arguments in SEARCHES.items():
        assert (await call(node, tool, **arguments))["embedding_behind"] == 3, "who has no token is told as well"
        elsewhere = Visitor(Principal("other", "elsewhere"))
        assert "embedding_behind" not in await call(node, tool, elsewhere, **arguments), (
            "these are writes of another namespace"
        )
    answer = await node.running.door.read(Visitor(node.running.door.local), "memory://l2-insights?query=gearbox", {})
    assert answer.body["embedding_behind"] == 3
    assert (
        "embedding_behind"
        not in (await node.running.door.read(Visitor(node.running.door.local), "memory://l2-insights", {})).body
    )
    node.slow.goes_on.set()
    assert await is_embedded(node, token)
    assert "embedding_behind" not in await call(node, "journal_query", visitor, query="gearbox whines")
    assert "embedding_behind" not in await search_node(node.running, {"query": "gearbox whines"})


async def test_vectors_that_come_within_the_moment_are_waited_for(node: SlowNode) -> None:
    visitor = Visitor(node.running.door.local)
    node.running.services.limits = Limits(vector_wait_s=FOREVER_S)
    node.slow.goes_on.clear()
    await write(node, 1, visitor)
    asyncio.get_running_loop().call_later(0.3, node.slow.goes_on.set)
    found = await call(node, "journal_query", visitor, query="gearbox whines")
    assert not {"stale", "embedding_behind"} & set(found)


async def test_a_search_of_beliefs_waits_that_moment_for_the_tensions_of_its_callers_beliefs_too(
    node: SlowNode,
) -> None:
    visitor = Visitor(node.running.door.local)
    node.running.services.limits = Limits(0.2, 0.2, vector_wait_s=FOREVER_S)
    node.slow.goes_on.clear()
    for state in ("safe", "not safe"):
        await call(node, "belief_create", visitor, content=f"I realized that the old harbour crane is {state}.")
    asyncio.get_running_loop().call_later(0.3, node.slow.goes_on.set)
    found = await call(node, "belief_query", visitor, query="old harbour crane")
    older, newer = sorted(found["beliefs"], key=lambda belief: str(belief["created_at"]))
    assert [dispute["id"] for dispute in older["disputed_by"]] == [newer["id"]]
    assert all(dispute["tension"] for dispute in older["disputed_by"])


async def test_what_searches_by_vectors_alone_waits_as_long_as_for_any_write_and_says_it_where_its_contract_has_notes(
    node: SlowNode,
) -> None:
    visitor = Visitor(node.running.door.local)
    node.running.services.parts[InnerVoiceConfig] = InnerVoiceConfig(is_enabled=True)
    node.running.services.limits = Limits(read_wait_s=0.2)
    node.slow.goes_on.clear()
    token = await write(node, 1, visitor)
    assert await node.running.store.applied.wait(token, timeout_s=PATIENCE_S, stages=("extract",))
    found = await call(node, "inner_voice.retrieve", visitor, query="gearbox")
    assert set(found) == {"snippets", "diagnostics"}
    assert (found["diagnostics"]["embedding_behind"], found["diagnostics"]["stale"]) == (1, True)


async def test_a_node_that_is_behind_says_what_it_lacks_to_every_reader_and_stops_when_it_has_caught_up(
    node: SlowNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.backlog.LATE_S", 0.0)
    may_apply, apply = asyncio.Event(), node.running.store.materialiser.apply

    async def held(records: Sequence[Record]) -> Any:
        await may_apply.wait()
        return await apply(records)

    monkeypatch.setattr(node.running.store.materialiser, "apply", held)
    token = await write(node, 1, Visitor(node.running.door.local))
    await node.running.lag.observe()
    reader = Visitor(Principal("reader", "elsewhere"))  # has written nothing, has no token
    for tool, arguments in (
        *SEARCHES.items(),
        ("graph_query", {"query": "MATCH (n) RETURN count(n) AS n"}),
        ("belief_get", {"belief_id": "x"}),
    ):
        behind = (await call(node, tool, reader, **arguments))["behind"]
        assert behind["records"] >= 1 and behind["seconds"] >= 0
    assert (await node.running.door.read(reader, "memory://working-memory", {})).body["behind"]["records"] >= 1
    assert "behind" not in await call(node, "journal_write", reader, content="Not a read.", category="insight")
    assert (await search_node(node.running, {"query": "gearbox"}))["behind"]["records"] >= 1
    assert (await why_node(node.running, {"query": "gearbox", "record_id": "x"}))["behind"]["records"] >= 1
    _, lacks = await node.control.snapshots.get(0.0)
    assert lacks["behind"]["records"] >= 1
    may_apply.set()
    assert await is_embedded(node, token)
    assert (await node.control.snapshots.get(1000.0))[1] == lacks, "the same copy lacks the same"
    async with asyncio.timeout(PATIENCE_S):
        while "behind" in (found := await call(node, "journal_query", reader, query="gearbox")):
            await asyncio.sleep(0.05)
    assert found["success"]
    assert "behind" not in (await node.control.snapshots.get(0.0))[1]


@pytest.mark.parametrize(
    ("backlog", "is_said"), [((0, 0.0), False), ((5, LATE_S - 0.1), False), ((5, LATE_S), True), ((1, 4000.04), True)]
)
def test_what_is_on_its_way_is_not_said(backlog: tuple[int, float], is_said: bool) -> None:
    records, seconds = backlog
    expected = {"behind": {"records": records, "seconds": round(seconds, 1)}} if is_said else {}
    assert Backlog(*backlog).flag() == expected


async def test_only_partitions_on_which_the_stage_has_not_come_as_far_as_the_store_are_lagging(node: SlowNode) -> None:
    first, second, other = Partition(MEMORY.name, 0), Partition(MEMORY.name, 1), Partition("other", 0)
    node.running.store.applied.advance(
        {first: 900, second: 900, other: 900}, {("embed", first): 900, ("embed", second): 899}
    )
    assert node.running.store.applied.lagging("embed", MEMORY.name) == {second: 899}
