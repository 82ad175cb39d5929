"""auto_bootstrap_north_star: what memories are about becomes the North Star, and what is of no one matter does not."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from mcp_ingress.door import Principal
from processors.context_graph.read.candidates import Sample
from processors.context_graph.rules.goals import background, coherence_of, confidence_of
from processors.embedding.loader import load_embedder
from processors.embedding.model import Embedder, encode_documents
from storage.search.vectors.token_vectors import unit
from streams.codec import encode
from streams.event_types.context_goals import GOAL_BOOTSTRAPPED
from streams.events import Event
from streams.topics import MEMORY
from tests.context_graph.conftest import ModelNode
from tests.context_graph.test_ends import merging, publish, stored
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import NOON
from tests.talos.node import SmallNode
from tests.valence_kb.conftest import Agent

TOOL = "auto_bootstrap_north_star"
OVERVIEW = "Project overview: A Rust MCP server implementing bio-nervous context graph with GWT consciousness..."
TIDES = [f"The tide at the harbour turns at {hour} and the ferry waits." for hour in range(1, 9)]
UNRELATED = Path(__file__).with_name("unrelated.txt").read_text(encoding="utf-8").splitlines()
"""Three sentences of each of 66 matters, which share nothing with the background."""


def of_namespace(node: SmallNode, namespace: str) -> Agent:
    """An agent whose credential gives this namespace."""
    agent = Agent(node)
    agent._visitor.principal = Principal(namespace, namespace)
    return agent


@pytest.fixture(scope="module")
def model(model_cache: Path) -> Embedder:
    return load_embedder("minilm", cache_dir=model_cache)


@pytest.fixture(scope="module")
def unrelated_rows(model: Embedder) -> np.ndarray:
    return encode_documents(model, background())


@pytest.fixture(scope="module")
def model_agent(tmp_path_factory: pytest.TempPathFactory, model: Embedder) -> Iterator[Agent]:
    node = ModelNode(tmp_path_factory.mktemp("model"), model)
    yield Agent(node)
    node.close()


async def test_an_empty_store_has_no_purpose(asked: Agent) -> None:
    failed = await asked.call(TOOL)
    assert (failed["error_code"], failed["reason"], failed["best_confidence"]) == (
        "bootstrap_error",
        "insufficient_data",
        0.0,
    )
    assert "store_memory" in failed["remedy"] and failed["remedy"] in failed["message"]
    assert asked.door.inventory.toolsets["context_graph"].errors.rpc_code("bootstrap_error", is_refusal=True) == -32110


async def test_the_quick_start_succeeds_on_one_memory_and_takes_in_the_next(model_agent: Agent) -> None:
    overview = {"content": OVERVIEW, "rationale": "Initial project understanding", "importance": 0.8}
    kept = await model_agent.call("store_memory", **overview)
    first = await model_agent.call(TOOL, confidence_threshold=0.7, max_candidates=10)
    result = first["bootstrap_result"]
    assert (first["status"], result["source"], result["level"]) == ("bootstrapped", "discovered", "NorthStar")
    assert (result["member_count"], result["provisional"], result["strong"]) == (1, True, False)
    assert result["goal_text"] == OVERVIEW and result["confidence"] >= 0.7 and result["coherence_score"] == 1.0
    assert first["discovery_metadata"]["fingerprints_analyzed"] == 1 and kept["fingerprintId"]
    assert first["initialized_services"] == [
        *("drift_detector", "pruning_service", "consolidation_service", "subgoal_discovery")
    ]
    for more in ("The MCP server keeps its context graph in memory.", "A context graph of a Rust server has layers."):
        await model_agent.call("store_memory", content=more)
    second = await model_agent.call(TOOL)
    again = second["bootstrap_result"]
    assert (second["status"], again["source"], again["goal_id"]) == ("reinitialized", "existing", result["goal_id"])
    assert (again["member_count"], again["provisional"]) == (3, False), "a provisional goal takes in what came"
    await model_agent.call("store_memory", content="Servers written in Rust speak MCP.")
    third = (await model_agent.call(TOOL))["bootstrap_result"]
    assert third == again, "a goal that stands on three is found once"


async def test_the_same_matter_is_found_once_and_a_second_call_answers_it(agent: Agent) -> None:
    ids = await stored(agent, *TIDES)
    first = await agent.call(TOOL, confidence_threshold=0.5)
    result = first["bootstrap_result"]
    assert result["member_count"] == len(ids) and not result["provisional"]
    assert result["goal_text"] in TIDES and set(result["dominant_embedders"]) <= {f"E{n}" for n in range(1, 14)}
    assert first["discovery_metadata"] == {
        "fingerprints_analyzed": 8,
        "clusters_found": first["discovery_metadata"]["clusters_found"],
        "candidates_evaluated": 1 + first["discovery_metadata"]["clusters_found"],
        "goals_discovered": 1,
        "algorithm": "kmeans-13",
    }
    await stored(agent, "Recipe: fold the flour into the eggs.")
    second = await agent.call(TOOL, confidence_threshold=1.0)
    assert second["bootstrap_result"] == result | {"source": "existing"}
    assert (second["status"], second["discovery_metadata"]["goals_discovered"]) == ("reinitialized", 0)


async def test_max_candidates_looks_at_the_largest_only(agent: Agent) -> None:
    await stored(agent, *TIDES)
    found = await agent.call(TOOL, confidence_threshold=0.0, max_candidates=1)
    assert found["discovery_metadata"]["candidates_evaluated"] == 1
    assert found["bootstrap_result"]["member_count"] == len(TIDES), "the whole store is the largest"


async def test_sentences_of_no_one_matter_are_refused_with_a_threshold_that_would_pass(model_agent: Agent) -> None:
    node = model_agent.node
    texts = random.Random(3).sample(UNRELATED, 40)
    events = [
        Event(f"u{number}", "test", "thalweg.context.memory.stored.v1", "apart", NOON, {"content": text})
        for number, text in enumerate(texts)
    ]
    await node.publish([encode(MEMORY.name, event) for event in events])
    apart = of_namespace(node, "apart")
    failed = await apart.call(TOOL)
    assert (failed["error_code"], failed["reason"]) == ("bootstrap_error", "insufficient_data")
    assert failed["best_confidence"] < 0.65, "far from 0.7, because no group of them is of one matter"
    threshold = float(failed["remedy"].split("`confidence_threshold` ")[1].split(",")[0])
    found = await apart.call(TOOL, confidence_threshold=threshold)
    assert found["status"] == "bootstrapped" and found["bootstrap_result"]["confidence"] >= threshold


@pytest.mark.parametrize("seed", range(3))
def test_no_mix_of_unrelated_sentences_comes_near_one_matter(
    model: Embedder, unrelated_rows: np.ndarray, seed: int
) -> None:
    """With every view dominant that could be, and in any part and order of them."""
    chance = random.Random(seed)
    texts = chance.sample(UNRELATED, 198 if seed == 0 else chance.randrange(20, 198))
    rows = unit(encode_documents(model, texts))
    sample = Sample([str(number) for number in range(len(texts))], rows)
    groups: Sequence[np.ndarray] = [np.arange(len(texts)), *sample.clusters]
    for places in groups:
        coherence = coherence_of(rows[places], unrelated_rows, len(places) / len(texts))
        assert confidence_of(coherence, len(places), len(texts), 7 / 13) < 0.7, (seed, len(places), coherence)


async def test_memories_without_vectors_or_model_give_no_purpose_and_say_so(agent: Agent, node: EmbeddingNode) -> None:
    node.is_slow = True
    await stored(agent, *TIDES)
    failed = await agent.call(TOOL)
    assert failed["reason"] == "insufficient_data" and "vector" in failed["message"]
    node.services.embedder = None
    failed = await agent.call(TOOL)
    assert failed["error_code"] == "bootstrap_error" and "model" in failed["message"]
    assert agent.door.inventory.toolsets["context_graph"].errors.rpc_code("bootstrap_error", is_refusal=False) == -32110


async def test_two_namespaces_have_goals_of_their_own(agent: Agent) -> None:
    await stored(agent, *TIDES)
    found = (await agent.call(TOOL, confidence_threshold=0))["bootstrap_result"]
    other = of_namespace(agent.node, "other")
    assert (await other.call(TOOL))["reason"] == "insufficient_data"
    await other.call("store_memory", content="Bread rises overnight.")
    theirs = (await other.call(TOOL, confidence_threshold=0))["bootstrap_result"]
    assert theirs["goal_id"] != found["goal_id"] and theirs["goal_text"] == "Bread rises overnight."
    assert (await agent.call(TOOL))["bootstrap_result"]["goal_text"] == found["goal_text"]


async def test_the_first_of_two_bootstraps_wins_and_a_resend_answers_it(agent: Agent, node: EmbeddingNode) -> None:
    await stored(agent, *TIDES)
    first = await agent.call(TOOL, confidence_threshold=0, request_id="once")
    late = {"goal_text": "Late.", "medoid_id": "m", "member_ids": ["m", "n", "o"], "confidence": 1, "coherence": 1}
    await publish(node, Event("late", "producer", GOAL_BOOTSTRAPPED, "default", NOON, {"goal": late}))
    resent = await agent.call(TOOL, confidence_threshold=0, request_id="once")
    assert resent["bootstrap_result"] == first["bootstrap_result"] and resent["status"] == "bootstrapped"
    assert node.store.sql("SELECT count(*) FROM context_goals") == [(1,)]


async def test_merged_members_count_as_what_became_of_them(agent: Agent, node: EmbeddingNode) -> None:
    ids = await stored(agent, *TIDES)
    await publish(node, merging(ids[0], ids[1], content=f"{TIDES[0]} | {TIDES[1]}"))
    found = (await agent.call(TOOL, confidence_threshold=0))["bootstrap_result"]
    assert found["member_count"] == len(ids) - 1, "the merged one in the place of two"


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"confidence_threshold": 1.1}, "confidence_threshold"),
        ({"confidence_threshold": "high"}, "confidence_threshold"),
        ({"max_candidates": 0}, "max_candidates"),
        ({"max_candidates": 101}, "max_candidates"),
        ({"candidates": 3}, "candidates"),
    ],
)
async def test_bad_arguments_are_refused_by_name(asked: Agent, arguments: dict[str, object], field: str) -> None:
    failed = await asked.call(TOOL, **arguments)
    assert failed["field"] == field and failed["error_code"] == "invalid_argument"
