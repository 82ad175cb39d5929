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
    assert sum(status["quadrantCounts"].values()) == 0


async def test_the_status_counts_memories_and_agrees_with_its_own_pulse(agent: Agent, node: EmbeddingNode) -> None:
    for number in range(3):
        await inject(agent, said(SEA, number))
    node.is_slow = True
    await agent.call("store_memory", content="Winds turn.")
    status = await agent.call("get_memetic_status")
    assert (status["nodeCount"], status["fingerprintCount"]) == (4, 3), "one has no vector yet"
    said_bytes = sum(len(said(SEA, number).encode()) for number in range(3)) + len("Winds turn.")
    assert status["storageSizeBytes"] == said_bytes
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


async def test_the_manifest_says_which_model_makes_each_view_and_which_views_are_missing(
    agent: Agent, node: EmbeddingNode
) -> None:
    manifest = await agent.call("get_graph_manifest")
    assert [layer["name"] for layer in manifest["layers"]] == ["Perception", "Memory", "Reasoning", "Meta", "Action"]
    assert all(layer["status"] == "active" and layer["detail"] for layer in manifest["layers"])
    views = {view["embedder"]: view for view in manifest["embedders"]}
    assert list(views) == [f"E{number}" for number in range(1, 14)] and manifest["embedderCount"] == 13
    assert views["E1"]["model"] == node.services.embedder.info.model_id  # type: ignore[union-attr]
    assert not any(view["trained"] for view in views.values()), "features that are hashed are not learned"
    assert "no token vectors" in views["E12"]["unavailable_because"] and views["E9"]["available"]
    available = sum(view["available"] for view in views.values())
    assert (await agent.call("get_memetic_status"))["embedderCount"] == available == 10
    assert (await inject(agent, said(SEA, 1)))["embedderCount"] == available
    node.services.embedder = None
    bare = await agent.call("get_graph_manifest")
    assert [view["embedder"] for view in bare["embedders"] if not view["available"]] == [
        "E1",
        "E5",
        "E8",
        "E10",
        "E11",
        "E12",
    ]


async def test_the_manifest_tells_which_layer_is_down_while_the_store_is(agent: Agent, node: EmbeddingNode) -> None:
    await inject(agent, said(SEA, 1))
    node.reader.is_down = node.is_down = True
    layers = {layer["name"]: layer for layer in (await agent.call("get_graph_manifest"))["layers"]}
    assert {name: layer["status"] for name, layer in layers.items()} == {
        "Perception": "active",
        "Memory": "down",
        "Reasoning": "down",
        "Meta": "active",
        "Action": "down",
    }
    assert "does not answer" in layers["Memory"]["detail"]
