"""A node that has just started: what is written while it looks for texts without vectors is the stage's alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from streams.event_types.memory import EMBEDDED
from streams.positions import Freshness
from tests.context_graph.sleeper import awake
from tests.patience import SOON_S

WRITES = 60


async def test_a_young_node_embeds_each_text_once(tmp_path: Path) -> None:
    async with awake(tmp_path / "home") as agent:
        for number in range(WRITES):
            answer = await agent.call("belief_create", content=f"The gauge of weir {number} drifts by {number} inches.")
        token = Freshness.from_json(answer["freshness"])
        assert await agent.node.running.store.applied.wait(token, timeout_s=SOON_S, stages=("embed",))
        facts = await agent.logged(EMBEDDED)
    embedded = Counter(item["record_id"] for fact in facts for item in fact.data["vectors"])
    assert len(embedded) == WRITES and set(embedded.values()) == {1}
