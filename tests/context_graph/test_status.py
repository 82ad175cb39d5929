"""get_memetic_status and utl_status say what is, and the pulse of the same answer says it too."""

from __future__ import annotations

from datetime import timedelta

from tests.context_graph.test_inject_context import SEA, inject, said
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent


async def test_the_status_of_an_empty_store_is_infancy_and_advises_nothing(agent: Agent) -> None:
    status = await agent.call("get_memetic_status")
    assert (status["phase"], status["fingerprintCount"], status["nodeCount"]) == ("Infancy", 0, 0)
    assert status["utl"]["johariQuadrant"] == "Hidden" and status["advisory"] is None
    assert status["layers"] == dict.fromkeys(("perception", "memory", "reasoning", "meta", "action"), "active")
    assert status["storageSizeBytes"] >= 0 and sum(status["quadrantCounts"].values()) == 0


async def test_the_status_counts_memories_and_agrees_with_its_own_pulse(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(3):
        await inject(agent, said(SEA, number))
    node.is_slow = True
    await agent.call("store_memory", content="Winds turn.")
    status = await agent.call("get_memetic_status")
    assert (status["nodeCount"], status["fingerprintCount"]) == (4, 3), "one has no vector yet"
    assert sum(status["quadrantCounts"].values()) == 4 and status["quadrantCounts"]["unmeasured"] == 1
    utl, pulse = status["utl"], status["_cognitive_pulse"]
    assert (utl["entropy"], utl["coherence"], utl["learningScore"]) == (
        pulse["entropy"],
        pulse["coherence"],
        pulse["learning_score"],
    )
    assert (utl["johariQuadrant"], utl["suggestedAction"]) == (pulse["quadrant"], pulse["suggested_action"])
    assert utl["consolidationPhase"] == "REM"


async def test_advice_is_a_call_that_can_be_made(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(30):
        await inject(agent, said(SEA, number))
    advisory = (await agent.call("get_memetic_status"))["advisory"]
    found = await agent.call(advisory["call"]["tool"], **advisory["call"]["arguments"])
    assert said(SEA, 29) in [row["content"] for row in found["results"]] and advisory["why"]


async def test_a_dream_is_advised_when_all_was_new_for_five_minutes(agent: Agent, node: EmbeddingNode) -> None:
    findings = {"entropy": 1.0, "coherence": 0.9, "surprise": 1.0, "emotional_weight": 1.0, "learning_score": 0.9}
    for number in range(4):
        node.request("context.memory.injected", content=f"New {number}.", rationale="r", **findings)
    assert (await agent.call("utl_status"))["advisory"]["action"] == "epistemic_action"
    node.clock.time += timedelta(minutes=5)
    assert (await agent.call("utl_status"))["advisory"]["action"] == "trigger_dream"


async def test_a_namespace_is_infant_at_49_interactions_and_grows_at_50(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(49):
        node.request("context.memory.stored", content=f"Tide {number}.")
    infant = await agent.call("utl_status")
    assert (infant["lifecycle_phase"], infant["interaction_count"], infant["lambda_s"]) == ("Infancy", 49, 0.7)
    assert infant["thresholds"] == {
        "entropy_trigger": 0.9,
        "coherence_trigger": 0.2,
        "min_importance_store": 0.1,
        "consolidation_threshold": 0.3,
    }
    await inject(agent, said(SEA, 1))
    grown = await agent.call("utl_status")
    assert (grown["lifecycle_phase"], grown["interaction_count"], grown["lambda_c"]) == ("Growth", 50, 0.5)
    assert grown["phase_angle"] == 0.0 and grown["intensity"] == "Low" and grown["stance"] == "balanced"
    assert grown["entropy"] == grown["_cognitive_pulse"]["entropy"]


async def test_layers_say_which_part_is_down(agent: Agent, node: EmbeddingNode) -> None:
    node.is_down = True
    assert (await agent.call("get_memetic_status"))["layers"]["action"] == "down"
    await agent.call("store_memory", content="Kept on this machine.")
    node.is_down = False
    assert (await agent.call("get_memetic_status"))["layers"]["action"] == "degraded"
    node.services.embedder = None
    assert (await agent.call("get_memetic_status"))["layers"]["perception"] == "degraded"


async def test_a_store_that_is_down_fails_the_status_as_storage(agent: Agent, node: EmbeddingNode) -> None:
    node.reader.is_down = True
    failed = await agent.call("get_memetic_status")
    assert failed["error_code"] == "storage" and failed["remedy"]
