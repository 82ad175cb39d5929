"""compute_teleological_vector: thirteen, seventy-eight and six numbers, kept under an id that can be searched with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.context_graph.test_search_teleological import QUERY, TEXTS
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TOOL = "compute_teleological_vector"


@pytest.fixture
async def stored(agent: Agent) -> list[str]:
    return [
        (await agent.call("store_memory", content=text, modality=kind))["fingerprintId"] for text, kind in TEXTS[:4]
    ]


async def test_a_vector_has_its_lengths_and_is_searched_with(
    agent: Agent, node: EmbeddingNode, stored: list[str]
) -> None:
    made = await agent.call(TOOL, content=QUERY)
    vector = made["vector"]
    assert [len(vector[name]) for name in ("purpose_vector", "cross_correlations", "group_alignments")] == [13, 78, 6]
    assert vector["provisional"] is True
    assert "tucker_core" not in vector
    assert "per_embedder" not in made
    assert 1 <= made["metadata"]["active_embedders"] <= 13
    found = await agent.call("search_teleological", query_vector_id=vector["id"])
    same = await agent.call("search_teleological", query_content=QUERY)
    assert [row["id"] for row in found["results"]] == [row["id"] for row in same["results"]] != []
    [(content, purpose)] = node.store.sql("SELECT content, purpose_vector FROM context_vectors")
    assert (content, purpose) == (QUERY, vector["purpose_vector"])
    assert node.store.sql("SELECT count(*) FROM context_memories") == [(4,)], "the content becomes no memory"


async def test_the_default_ranks_give_a_core_of_2048_numbers(agent: Agent, stored: list[str]) -> None:
    made = await agent.call(TOOL, content=QUERY, compute_tucker=True)
    core = made["vector"]["tucker_core"]
    assert len(core["core"]) == 2048
    assert core["compression_ratio"] == pytest.approx(1.2389, abs=5e-5)
    assert 0 < core["explained_variance"] <= 1
    assert core["factor_shapes"] == [[13, 4], [13, 4], [256, 128]]
    small = (await agent.call(TOOL, content=QUERY, compute_tucker=True, tucker_ranks=[1, 1, 1]))["vector"]
    assert len(small["tucker_core"]["core"]) == 1
    assert small["tucker_core"]["explained_variance"] < core["explained_variance"]


async def test_a_profile_changes_correlations_and_groups_but_not_the_purpose_vector(
    agent: Agent, stored: list[str]
) -> None:
    plain = (await agent.call(TOOL, content=QUERY))["vector"]
    code = (await agent.call(TOOL, content=QUERY, profile_id="code_search"))["vector"]
    assert code["purpose_vector"] == pytest.approx(plain["purpose_vector"], abs=1e-3)
    assert code["cross_correlations"] != plain["cross_correlations"]
    assert code["group_alignments"]["implementation"] != plain["group_alignments"]["implementation"]


async def test_an_empty_store_has_no_purpose_to_be_aligned_with(agent: Agent) -> None:
    made = await agent.call(TOOL, content=QUERY)
    assert not np.any(made["vector"]["purpose_vector"])
    assert (made["vector"]["confidence"], made["metadata"]["active_embedders"]) == (0.0, 0)


async def test_each_view_says_which_model_made_it(agent: Agent, stored: list[str]) -> None:
    made = await agent.call(TOOL, content="why", include_per_embedder=True)
    outputs = made["per_embedder"]
    assert [each["embedder"] for each in outputs] == [f"E{number}" for number in range(1, 14)]
    for each in outputs:
        assert {"provider", "model", "trained", "dimension"} <= each.keys()
        if each["available"]:
            assert "vector" in each or len(each["indices"]) == len(each["values"])


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"tucker_ranks": [14, 4, 4]}, "range", "tucker_ranks"),
        ({"tucker_ranks": [4, 4, 257]}, "range", "tucker_ranks"),
        ({"tucker_ranks": [4, 4]}, "range", "tucker_ranks"),
        ({"profile_id": "nobody"}, "not_found", "profile_id"),
        ({"content": "  "}, "missing", "content"),
    ],
)
async def test_what_cannot_be_computed_is_refused_with_a_sentence(
    agent: Agent, arguments: dict[str, Any], reason: str, field: str
) -> None:
    refused = await agent.call(TOOL, **({"content": QUERY} | arguments))
    assert (refused["reason"], refused["field"]) == (reason, field), refused["message"]
    assert refused["message"].endswith(".")
