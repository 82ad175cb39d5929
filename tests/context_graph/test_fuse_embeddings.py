"""fuse_embeddings: one vector of a memory, whose shares are what was asked for; it can be searched with."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import pytest_asyncio

from processors.context_graph.rules.fusion import METHODS
from tests.context_graph.test_search_teleological import TEXTS
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TOOL = "fuse_embeddings"


@pytest.fixture
async def stored(agent: Agent) -> list[str]:
    return [
        (await agent.call("store_memory", content=text, modality=kind))["fingerprintId"] for text, kind in TEXTS[:4]
    ]


@pytest_asyncio.fixture(scope="module")
async def known(asked: Agent) -> str:
    """A memory with which all tests of this module ask what is refused."""
    return (await asked.call("store_memory", content=TEXTS[0][0], modality=TEXTS[0][1]))["fingerprintId"]


async def test_each_method_and_synergy_makes_its_own_vector_of_length_one(
    agent: Agent, node: EmbeddingNode, stored: list[str]
) -> None:
    made = []
    for method in METHODS:
        for synergy in (True, False):
            fused = await agent.call(
                TOOL, memory_id=stored[1], fusion_method=method, apply_synergy=synergy, store_result=False
            )
            assert len(fused["vector"]) == 256
            assert np.linalg.norm(fused["vector"]) == pytest.approx(1.0, abs=1e-4)
            assert sum(fused["weights"]) == pytest.approx(1.0, abs=1e-4)
            assert 0 <= fused["confidence"] <= 1
            assert (fused["fusion_method"], fused["stored"]) == (method, False)
            made.append(tuple(fused["weights"]))
    assert len(set(made)) == len(made)
    assert node.store.sql("SELECT count(*) FROM context_vectors") == [(0,)]


async def test_custom_weights_of_one_view_are_that_view_and_win_over_a_profile(agent: Agent, stored: list[str]) -> None:
    only = [1.0] + [0.0] * 12
    fused = await agent.call(
        TOOL,
        memory_id=stored[0],
        fusion_method="linear",
        custom_weights=only,
        profile_id="code_search",
        apply_synergy=False,
    )
    assert fused["weights"] == only
    assert fused["metadata"]["weights_from"] == "custom_weights"
    assert fused["metadata"]["profile_id"] is None


async def test_a_profile_weighs_the_views_and_says_how_they_are_fused(agent: Agent, stored: list[str]) -> None:
    plain = await agent.call(TOOL, memory_id=stored[1], store_result=False)
    code = await agent.call(TOOL, memory_id=stored[1], profile_id="code_search", store_result=False)
    assert code["weights"][6] > plain["weights"][6]
    assert code["metadata"]["weights_from"] == "profile"
    await agent.call("manage_teleological_profile", action="create", name="Mine", fusion_strategy="gated")
    mine = await agent.call(TOOL, memory_id=stored[1], profile_id="mine")
    assert mine["fusion_method"] == "gated"


async def test_a_stored_vector_is_searched_with_as_its_memory_by_its_weights(
    agent: Agent, node: EmbeddingNode, stored: list[str]
) -> None:
    fused = await agent.call(TOOL, memory_id=stored[2])
    assert fused["stored"] is True
    [(kind, memory_id, length)] = node.store.sql("SELECT kind, memory_id, len(vector) FROM context_vectors")
    assert (kind, memory_id, length) == ("fused", stored[2], 256)
    found = await agent.call("search_teleological", query_vector_id=fused["vector_id"])
    assert found["results"][0]["id"] == stored[2]
    as_memory = await agent.call("search_teleological", query_vector_id=stored[2])
    assert [row["similarity"] for row in found["results"]] != [row["similarity"] for row in as_memory["results"]]
    again = await agent.call(TOOL, memory_id=stored[2])
    assert again["vector"] == fused["vector"]


@pytest.mark.parametrize(
    ("arguments", "reason", "field"),
    [
        ({"memory_id": "nobody"}, "not_found", "memory_id"),
        ({"profile_id": "nobody"}, "not_found", "profile_id"),
        ({"custom_weights": [1] * 12}, "range", "custom_weights"),
        ({"custom_weights": [1] * 14}, "range", "custom_weights"),
        ({"custom_weights": [0] * 13}, "range", "custom_weights"),
        ({"custom_weights": [math.nan] * 13}, "range", "custom_weights"),
        ({"fusion_method": "mean"}, "enum", "fusion_method"),
    ],
)
async def test_what_cannot_be_fused_is_refused_with_a_sentence(
    asked: Agent, known: str, arguments: dict[str, Any], reason: str, field: str
) -> None:
    refused = await asked.call(TOOL, **({"memory_id": known} | arguments))
    assert (refused["reason"], refused["field"]) == (reason, field), refused["message"]
    assert refused["message"].endswith(".")
