"""Modulators and a broadcast change the order of a search; at the baseline they do not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from processors.context_graph.rules.attention import Pool, effective_results, near_enough, order
from processors.context_graph.rules.modulators import Levels
from tests.context_graph.test_inject_context import SEA, said
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

SCORES = np.array([0.9, 0.85, 0.84, 0.83, 0.8, 0.79, 0.5, 0.45, 0.4, 0.35, 0.3, 0.2])
SESSIONS = ["a", "b", "a", "c", "a", "d", "b", "a", "e", "f", "c", "a"]


def pool(**changes: object) -> Pool:
    aligned = np.full((len(SCORES), 13), np.nan)
    aligned[:, 0] = SCORES[::-1]  # meaning says the opposite of the engine
    aligned[:, 4] = aligned[:, 12] = SCORES
    return replace(Pool(SCORES, aligned, SESSIONS), **changes)  # type: ignore[arg-type]


def test_at_the_baseline_the_order_is_the_engines() -> None:
    assert order(pool(), Levels()).tolist() == list(range(len(SCORES)))
    few = Pool(SCORES[:5], None, SESSIONS[:5])
    assert order(few, Levels(dopamine=5.0)).tolist() == list(range(5))


def test_the_more_dopamine_the_fewer_results_and_sessions_stand_behind_an_answer() -> None:
    behind = [effective_results(SCORES, level) for level in (1.0, 2.0, 3.0, 4.0, 5.0)]
    assert behind == sorted(behind, reverse=True) and behind[0] > 1.3 * behind[-1]
    sessions = [
        len({SESSIONS[place] for place in order(pool(), Levels(dopamine=level))[:5]}) for level in (1.0, 3.0, 5.0)
    ]
    assert sessions == sorted(sessions, reverse=True) and sessions[0] > sessions[-1]


def test_serotonin_turns_from_the_first_view_to_all() -> None:
    assert order(pool(), Levels(serotonin=0.0)).tolist() == list(range(len(SCORES)))[::-1]
    assert order(pool(), Levels(serotonin=1.0))[0] == 0
    assert order(pool(aligned=None), Levels(serotonin=0.0)).tolist() == list(range(len(SCORES)))


def test_noradrenaline_takes_what_is_less_similar() -> None:
    assert near_enough(0.7, Levels()) == near_enough(0.7, Levels(noradrenaline=0.5)) == 0.7
    assert near_enough(0.7, Levels(noradrenaline=2.0)) == pytest.approx(0.35)


def test_what_stands_beside_a_broadcast_comes_first() -> None:
    beside = np.full(len(SCORES), np.nan)
    beside[7], beside[9], beside[0] = 1, 3, 0
    found = order(pool(beside=beside), Levels()).tolist()
    assert found.index(7) < 7 and found.index(9) < 9
    assert found.index(7) < found.index(9), "the nearer one more"
    far = np.full(len(SCORES), np.nan)
    assert order(pool(beside=far), Levels()).tolist() == list(range(len(SCORES)))


async def ids_of(agent: Agent, query: str, **more: object) -> list[str]:
    return [row["fingerprintId"] for row in (await agent.call("search_graph", query=query, **more))["results"]]


async def test_a_search_returns_more_while_noradrenaline_is_high_and_as_before_later(
    agent: Agent, node: EmbeddingNode
) -> None:
    for number in range(12):
        await agent.call("store_memory", content=said(SEA, number))
    least = {"minSimilarity": 0.9, "topK": 20}
    before = await ids_of(agent, said(SEA, 2), **least)
    await agent.call("adjust_neuromodulator", modulator="noradrenaline", delta=1.0)
    wide = await agent.call("search_graph", query=said(SEA, 2), **least)
    assert wide["count"] > len(before)
    node.clock.time += timedelta(seconds=600)
    after = await agent.call("search_graph", query=said(SEA, 2), **least)
    assert [row["fingerprintId"] for row in after["results"]] == before


async def test_after_a_broadcast_the_memories_beside_it_stand_higher_for_five_minutes(
    agent: Agent, node: EmbeddingNode
) -> None:
    texts = [f"{said(SEA, number)} Then the crew of boat {number % 4} slept." for number in range(16)]
    for number, text in enumerate(texts):
        node.request("context.memory.stored", content=text, session_id=f"2026-01-0{number // 4 + 1}-sea")
    query = "the crew slept"
    plain = await ids_of(agent, query, topK=16)
    chosen = plain[8]
    await agent.call("trigger_workspace_broadcast", memory_id=chosen, force=True)
    answer = await agent.call("search_graph", query=query, topK=16)
    moved = [row["fingerprintId"] for row in answer["results"]]
    assert sorted(moved) == sorted(plain) and moved != plain and answer["effective_results"] > 1
    node.clock.time += timedelta(seconds=301 + 600)
    assert await ids_of(agent, query, topK=16) == plain
