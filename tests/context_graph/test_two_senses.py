"""The order parameter through the tools: queries whose words and meaning point at one memory, and at two."""

from __future__ import annotations

import tomllib
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from tests.context_graph.conftest import ModelNode
from tests.valence_kb.conftest import Agent

MATTERS = tomllib.loads((Path(__file__).parents[1] / "fixtures" / "two_senses.toml").read_text())["matter"]
MEANING, WORDS = "E1", "E13"


class Town:
    """Memory and decoy of each matter, and an agent that asks every query in a session of its own."""

    def __init__(self, node: ModelNode) -> None:
        self.node, self.agent = node, Agent(node)
        self.contents: dict[str, str] = {}

    async def remember(self) -> None:
        for matter in MATTERS:
            for kind in ("memory", "decoy"):
                answer = await self.agent.call("store_memory", content=matter[kind])
                self.contents[answer["fingerprintId"]] = matter[kind]

    async def ask(self, query: str) -> tuple[dict[str, str], float]:
        """What each view puts first of the answer, and the order of the views behind it."""
        self.node.connection.open_session_id = query
        rows = (await self.agent.call("search_graph", query=query))["results"]
        sync = await self.agent.call("get_kuramoto_sync", session_id=query)
        return {view: self._first(rows, view) for view in (MEANING, WORDS)}, sync["r"]

    def _first(self, rows: list[dict[str, Any]], view: str) -> str:
        return self.contents[max(rows, key=lambda row: row["views"].get(view, -1.0))["fingerprintId"]]


async def test_queries_whose_words_point_elsewhere_than_their_meaning_lower_the_order_of_the_views(
    model_node: ModelNode,
) -> None:
    assert len(MATTERS) == 30
    town = Town(model_node)
    town.agent.door.start()
    await town.remember()
    same, apart = list[float](), list[float]()
    for matter in MATTERS:
        first, r = await town.ask(matter["same"])
        assert first == {MEANING: matter["memory"], WORDS: matter["memory"]}, matter["same"]
        same.append(r)
        first, r = await town.ask(matter["apart"])
        assert first == {MEANING: matter["memory"], WORDS: matter["decoy"]}, matter["apart"]
        apart.append(r)
    state = await town.agent.call("get_consciousness_state", session_id=MATTERS[-1]["apart"])
    await town.agent.door.stop()
    assert state["r"] == pytest.approx(apart[-1], abs=1e-9)
    assert mean(same) - mean(apart) >= 0.1
    assert sum(one > other for one, other in zip(same, apart, strict=True)) == 30
