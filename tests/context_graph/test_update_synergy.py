"""update_synergy_matrix: what was judged changes the matrix and the next search; half relevant changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import numpy as np
import pytest

from processors.context_graph.rules import synergy
from tests.context_graph.test_search_teleological import QUERY, TEXTS
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TOOL = "update_synergy_matrix"


@pytest.fixture
async def judge(agent: Agent) -> AsyncIterator[Agent]:
    """An agent with some memories, whose searches are left on the log."""
    for text, kind in TEXTS:
        await agent.call("store_memory", content=text, modality=kind)
    agent.door.start()
    yield agent
    await agent.door.stop()


def matrix(node: EmbeddingNode) -> np.ndarray:
    [(pairs,)] = node.store.sql("SELECT pairs FROM context_synergy")
    return synergy.from_pairs(pairs)


def aligned(row: Mapping[str, Any]) -> np.ndarray:
    return np.array(row["breakdown"]["per_embedder"], np.float64)


async def searched(agent: Agent) -> dict[str, Any]:
    return await agent.call("search_teleological", query_content=QUERY, min_similarity=0, strategy="synergy_weighted")


async def test_a_judged_result_keeps_its_rank_or_gains_and_an_irrelevant_one_does_not_gain(
    judge: Agent, node: EmbeddingNode
) -> None:
    first = await searched(judge)
    about = {"query_vector_id": first["query_vector_id"], "learning_rate": 0.3}
    liked, disliked = first["results"][2]["id"], first["results"][4]["id"]
    raised = await judge.call(TOOL, **about, result_vector_id=liked, feedback="relevant")
    assert (raised["version"], raised["effective_score"]) == (1, 1.0)
    assert raised["frobenius_delta"] > 0
    assert 0 < raised["pairs_updated"] <= 78
    assert 0 < len(raised["largest_changes"]) <= 5
    place = {row["id"]: row["rank"] for row in (await searched(judge))["results"]}
    assert place[liked] <= 3
    lowered = await judge.call(TOOL, **about, result_vector_id=disliked, feedback="not_relevant")
    assert 0 < lowered["frobenius_delta"] < raised["frobenius_delta"]
    after = {row["id"]: row["rank"] for row in (await searched(judge))["results"]}
    assert after[disliked] >= place[disliked]
    learned = matrix(node)
    assert (learned == learned.T).all()
    assert (np.diag(learned) == 1).all()
    assert learned.min() >= synergy.LEAST
    assert learned[~np.eye(13, dtype=bool)].max() <= synergy.MOST


async def test_half_relevant_changes_nothing_and_a_score_wins_over_the_word(judge: Agent) -> None:
    first = await searched(judge)
    about = {"query_vector_id": first["query_vector_id"], "result_vector_id": first["results"][0]["id"]}
    same = await judge.call(TOOL, **about, feedback="partially_relevant", update_scope="all_pairs")
    assert (same["pairs_updated"], same["frobenius_delta"], same["largest_changes"]) == (0, 0.0, [])
    scored = await judge.call(TOOL, **about, feedback="not_relevant", relevance_score=0.9)
    assert scored["effective_score"] == 0.9
    liked = synergy.learn(synergy.INITIAL, aligned(first["results"][0]), 0.9, 0.01, "contributing_pairs")
    assert scored["largest_changes"] == liked.largest_changes


async def test_the_alignments_are_those_of_the_search_that_was_judged(judge: Agent, node: EmbeddingNode) -> None:
    first = await searched(judge)
    row = first["results"][0]
    about = {"query_vector_id": first["query_vector_id"], "result_vector_id": row["id"]}
    await judge.call(TOOL, **about, feedback="relevant", learning_rate=0.1)
    expected = synergy.learn(synergy.INITIAL, aligned(row), 1.0, 0.1, "contributing_pairs").matrix
    assert matrix(node) == pytest.approx(expected)


async def test_two_memories_can_be_judged_without_a_search(judge: Agent, node: EmbeddingNode) -> None:
    one, other = (row["id"] for row in (await searched(judge))["results"][:2])
    raised = await judge.call(
        TOOL, query_vector_id=one, result_vector_id=other, feedback="relevant", update_scope="all_pairs"
    )
    assert raised["pairs_updated"] > 0


async def test_what_no_search_returned_is_refused_with_a_sentence(judge: Agent, node: EmbeddingNode) -> None:
    first = await searched(judge)
    for query_id, result_id in (("nothing", first["results"][0]["id"]), (first["query_vector_id"], "nothing")):
        refused = await judge.call(
            TOOL, query_vector_id=query_id, result_vector_id=result_id, feedback="relevant", learning_rate=0.5
        )
        assert (refused["reason"], refused["field"]) == ("not_found", "query_vector_id")
        assert "search_teleological" in refused["message"]
    assert node.store.sql("SELECT count(*) FROM context_synergy") == [(0,)]


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [("feedback", "good", "enum"), ("relevance_score", 1.1, "range"), ("learning_rate", 0.6, "range")],
)
async def test_a_judgement_out_of_range_is_refused(judge: Agent, name: str, value: Any, reason: str) -> None:
    asked = {"query_vector_id": "a", "result_vector_id": "b", "feedback": "relevant"} | {name: value}
    refused = await judge.call(TOOL, **asked)
    assert (refused["reason"], refused["field"]) == (reason, name)
