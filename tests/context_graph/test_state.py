"""The state that steers: what the views agree on, what was broadcast, and modulators, as an agent sees them."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio

from processors.context_graph.rules.oscillators import FREQUENCIES_HZ, order_of
from tests.context_graph.test_inject_context import SEA, inject, said
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import make_event
from tests.valence_kb.conftest import Agent

NOBODY = "00000000-0000-4000-8000-000000000001"


@pytest_asyncio.fixture
async def agent(node: EmbeddingNode) -> AsyncIterator[Agent]:
    """An agent whose door writes down what searches leave: a state that was not written is waited for."""
    agent = Agent(node)
    agent.door.start()
    yield agent
    await agent.door.stop()


async def test_before_any_search_the_views_are_taken_to_agree_and_are_dormant(agent: Agent) -> None:
    sync = await agent.call("get_kuramoto_sync")
    assert sync["coupling"] == 2.0 and sync["state"] == "DORMANT" and sync["elapsed_seconds"] == 0.0
    assert sync["natural_freqs"] == list(FREQUENCIES_HZ) and len(sync["embedding_labels"]) == 13
    assert 0.82 < sync["r"] < 0.85 and sync["synchronization"] == sync["r"]
    r, psi = order_of(sync["phases"])
    assert (sync["r"], sync["psi"]) == (pytest.approx(r, abs=1e-9), pytest.approx(psi, abs=1e-9))


async def test_a_search_changes_the_order_and_reading_it_does_not(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(6):
        await agent.call("store_memory", content=said(SEA, number))
    before = await agent.call("get_kuramoto_sync")
    await agent.call("search_graph", query=said(SEA, 2))
    first = await agent.call("get_kuramoto_sync")
    assert first["r"] != before["r"] and first["state"] != "DORMANT"
    assert [(await agent.call("get_kuramoto_sync"))["r"] for _ in range(3)] == [
        pytest.approx(first["r"], abs=1e-12)
    ] * 3
    node.clock.time += timedelta(seconds=5)
    later = await agent.call("get_kuramoto_sync")
    assert later["r"] == pytest.approx(first["r"], abs=1e-12) and later["phases"] != first["phases"]
    assert later["elapsed_seconds"] == pytest.approx(first["elapsed_seconds"] + 5)
    node.clock.time += timedelta(seconds=600)
    assert (await agent.call("get_kuramoto_sync"))["state"] == "DORMANT"
    assert (await agent.call("get_kuramoto_sync", session_id="another"))["r"] == pytest.approx(before["r"])


async def test_the_coupling_is_clamped_and_a_stronger_one_foresees_more_order(agent: Agent) -> None:
    strong = await agent.call("adjust_coupling", new_K=25)
    assert (strong["old_K"], strong["new_K"], strong["K_clamped"]) == (2.0, 10.0, True)
    assert strong["predicted_r"] > 0.98 and 0.82 < strong["current_r"] < 0.85
    none = await agent.call("adjust_coupling", new_K=-1)
    assert (none["old_K"], none["new_K"]) == (10.0, 0.0) and none["predicted_r"] < 0.4
    assert (await agent.call("get_kuramoto_sync"))["coupling"] == 0.0


async def test_a_memory_competes_and_force_broadcasts_it(agent: Agent, node: EmbeddingNode) -> None:
    ids = [(await agent.call("store_memory", content=said(SEA, number)))["fingerprintId"] for number in range(3)]
    await agent.call("adjust_coupling", new_K=0.5)
    refused = await agent.call("trigger_workspace_broadcast", memory_id=ids[0])
    assert refused["was_selected"] is False and "r is 0." in refused["reason"]
    assert refused["score"] == pytest.approx(refused["new_r"] * 0.64) and refused["dopamine_triggered"] is False
    forced = await agent.call("trigger_workspace_broadcast", memory_id=ids[1], importance=1.0, force=True)
    assert (forced["was_selected"], forced["is_broadcasting"], forced["dopamine_triggered"]) == (True, True, True)
    assert forced["losers"] == [ids[0]]
    assert (await agent.call("get_neuromodulation_state"))["dopamine"]["level"] == pytest.approx(3.2)

    status = await agent.call("get_workspace_status")
    assert (status["active_memory"], status["is_broadcasting"], status["has_conflict"]) == (ids[1], True, True)
    assert status["conflict_memories"] == [ids[1], ids[0]] and status["wta"]["winner"] == ids[1]
    thresholds = (await agent.call("get_threshold_status"))["thresholds"]
    assert status["coherence_threshold"] == thresholds["theta_kur"]["value"] == 0.8
    assert status["wta"]["history_length"] == 1
    node.clock.time += timedelta(milliseconds=200)
    status = await agent.call("get_workspace_status")
    assert (status["active_memory"], status["is_broadcasting"]) == (ids[1], False)
    node.clock.time += timedelta(seconds=5)
    status = await agent.call("get_workspace_status")
    assert (status["candidates"], status["conflict_memories"], status["has_conflict"]) == ([], [], False)


async def test_where_the_views_agree_a_memory_is_broadcast_without_force(agent: Agent) -> None:
    identity = (await agent.call("store_memory", content=said(SEA, 0)))["fingerprintId"]
    found = await agent.call("trigger_workspace_broadcast", memory_id=identity)
    assert found["was_selected"] is True and found["new_r"] >= 0.8


async def test_a_broadcast_of_what_is_not_there_is_refused(agent: Agent) -> None:
    refused = await agent.call("trigger_workspace_broadcast", memory_id=NOBODY)
    assert refused["error_code"] == "invalid_argument" and NOBODY in refused["message"]


async def test_levels_are_raised_inside_their_bounds_and_go_back(agent: Agent, node: EmbeddingNode) -> None:
    state = await agent.call("get_neuromodulation_state")
    names = ("dopamine", "serotonin", "noradrenaline", "acetylcholine")
    assert [state[name]["level"] for name in names] == [3.0, 0.5, 1.0, 0.001]
    assert [state[name]["read_only"] for name in names] == [False, False, False, True]
    raised = await agent.call("adjust_neuromodulator", modulator="dopamine", delta=10)
    assert (raised["old_level"], raised["new_level"], raised["delta_applied"], raised["clamped"]) == (
        3.0,
        5.0,
        2.0,
        True,
    )
    assert [(each["modulator"], each["delta"]) for each in raised["cascades"]] == [
        ("serotonin", 0.05),
        ("noradrenaline", 0.1),
    ]
    node.clock.time += timedelta(seconds=1)
    state = await agent.call("get_neuromodulation_state")
    assert state["dopamine"]["level"] == pytest.approx(4.9, abs=2e-3)
    node.clock.time += timedelta(seconds=600)
    state = await agent.call("get_neuromodulation_state")
    assert state["dopamine"]["level"] == pytest.approx(3.0) and state["derived_parameters"]["is_alert"] is False


async def test_scores_that_are_never_foreseen_raise_acetylcholine(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(12):
        score = {"learning_score": float(number % 2)}
        node.request(
            "context.memory.injected",
            **{"content": f"Tide {number}.", "rationale": "r", "entropy": 0.5, "coherence": 0.5, "surprise": 0.5},
            **{"emotional_weight": 1.0, **score},
        )
    state = await agent.call("get_neuromodulation_state")
    assert state["acetylcholine"]["level"] == pytest.approx(0.0015)
    assert state["derived_parameters"]["is_learning_elevated"] is True
    await inject(agent, said(SEA, 1))


async def test_an_empty_store_has_no_consciousness(agent: Agent) -> None:
    state = await agent.call("get_consciousness_state")
    assert state["C"] == 0.0 and state["differentiation"] == 0.0 and state["meta_score"] == 0.5
    assert state["component_analysis"]["limiting_factor"] == "differentiation"
    assert state["identity"]["status"] == "Healthy" and state["identity"]["trajectory_length"] == 0
    ego = await agent.call("get_ego_state")
    assert ego["purpose_vector"] == [0.0] * 13 and ego["provisional"] is True and ego["coherence_with_actions"] == 0.0
    assert ego["self_node"] == "00000000-0000-0000-0000-000000000000"


async def test_the_level_is_the_product_that_its_answer_shows(agent: Agent) -> None:
    for number in range(5):
        await inject(agent, said(SEA, number))
    await agent.call("search_graph", query=said(SEA, 3))
    state = await agent.call("get_consciousness_state")
    expected = state["r"] / (1 + math.exp(2 - 4 * state["meta_score"])) * state["differentiation"]
    assert state["C"] == pytest.approx(expected, abs=1e-9) and 0 < state["C"] < 1
    codes = {"FRAGMENTED": "FRG", "EMERGING": "EMG", "CONSCIOUS": "CON", "HYPERSYNC": "HYP"}
    assert state["gwt_state"] == codes.get(state["state"], "DOR")
    assert state["identity"]["trajectory_length"] == 5
    ego = await agent.call("get_ego_state")
    assert ego["purpose_vector"] == state["identity"]["purpose_vector"] and ego["coherence_with_actions"] > 0.9
    other = await agent.call("get_ego_state", session_id="another")
    assert other["trajectory_length"] == 0


async def test_the_trajectory_grows_by_one_with_each_memory_and_ends_at_a_thousand(
    agent: Agent, node: EmbeddingNode
) -> None:
    async def length(session_id: str = "default") -> int:
        return int((await agent.call("get_ego_state", session_id=session_id))["trajectory_length"])

    assert await length() == 0
    ids = [(await agent.call("store_memory", content=said(SEA, number)))["fingerprintId"] for number in range(2)]
    assert await length() == 2
    await agent.call("store_memory", content=said(SEA, 1))
    await agent.call("trigger_workspace_broadcast", memory_id=ids[0], force=True)
    assert await length() == 2, "neither a content that is there nor a broadcast is a new memory"
    about = {"time": node.clock.time, "namespace": "default"}
    contents = [{"content": f"Tide {number}.", "session_id": "tides"} for number in range(997)]
    events = [make_event("context.memory.stored", one, event_id=one["content"], **about) for one in contents]
    node.store.publish(*events)
    assert (await length(), await length("tides")) == (999, 997)
    for number in range(3):
        await agent.call("store_memory", content=f"A letter came on day {number}.")
        assert await length() == 1000
    assert await length("tides") == 997
