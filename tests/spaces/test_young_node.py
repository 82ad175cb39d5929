"""A node that has just started: what is written while it looks for texts without vectors is the stage's alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from streams.event_types.memory import EMBEDDED
from streams.positions import Freshness
from tests.context_graph.sleeper import Sleeper
from tests.patience import SOON_S
from tests.schema import migrated_home
from thalweg.process.node import Node
from thalweg.settings import Settings

WRITES = 60


@pytest.fixture
async def sleeper(tmp_path: Path) -> AsyncIterator[Sleeper]:
    node = Node(Settings(home=migrated_home(tmp_path / "home"), embedder="hashing", partitions=1))
    await node.start()
    yield Sleeper(node)
    await node.stop()


async def test_a_young_node_embeds_each_text_once(sleeper: Sleeper) -> None:
    for number in range(WRITES):
        answer = await sleeper.call("belief_create", content=f"The gauge of weir {number} drifts by {number} inches.")
    token = Freshness.from_json(answer["freshness"])
    assert await sleeper.node.running.store.applied.wait(token, timeout_s=SOON_S, stages=("embed",))
    embedded = Counter(item["record_id"] for fact in await sleeper.logged(EMBEDDED) for item in fact.data["vectors"])
    assert len(embedded) == WRITES and set(embedded.values()) == {1}
