"""What searches returned together: the edges that a dream draws of it, and what they change."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from processors.context_graph.rules.co_recall import DEPTH, FULL_RECALLS, Recall, co_recalled
from processors.context_graph.rules.edges import Edge
from storage.search.ranking.ranks import rank_strength
from storage.search.ranking.weights import ANCHORS, RECALLED_SHARE, recalled_scores
from storage.search.records.relations import Together
from streams.codec import encode
from streams.event_types.context_edges import EDGES_CHANGED, REM_WEIGHT
from streams.events import Event
from streams.topics import DERIVED
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

NOON = datetime(2026, 1, 1, 12)
QUESTION = "where does the harbour tide turn"


def recalls(ids: str, times: int, query_id: str = "q", since: datetime = NOON) -> list[Recall]:
    return [
        Recall(query_id, tuple(ids), (0.5,) * len(ids), since + timedelta(minutes=number)) for number in range(times)
    ]


def test_a_query_that_is_asked_again_joins_its_results_by_their_ranks() -> None:
    [first, second, third] = co_recalled(recalls("bca", FULL_RECALLS), [])
    assert [(one.source_id, one.target_id) for one in (first, second, third)] == [("a", "b"), ("a", "c"), ("b", "c")]
    assert {one.kind for one in (first, second, third)} == {"rem"}
    assert third.weight == pytest.approx(0.3 + 0.7 * 6 / 7), "first and second"
    assert first.weight == pytest.approx(0.3 + 0.7 * 6 / 8), "first and third"
    assert (third.confidence, third.is_removed) == (1.0, False)


def test_a_query_that_is_asked_once_joins_nothing_and_one_asked_twice_a_quarter() -> None:
    assert co_recalled(recalls("ab", 1), []) == []
    [half] = co_recalled(recalls("ab", 2), [])
    assert half.weight == pytest.approx(0.3 + 0.7 * 0.25 * 6 / 7) and half.confidence == 0.25
    assert co_recalled(recalls("ab", 50), []) == co_recalled(recalls("ab", 5), [])


def test_the_last_answer_counts_and_of_two_queries_the_one_that_holds_both_higher() -> None:
    later = recalls("ab", 1, since=NOON + timedelta(days=1))
    assert [one.source_id + one.target_id for one in co_recalled([*later, *recalls("abc", 4)], [])] == ["ab"]
    [_, joined, _] = co_recalled([*recalls("bca", 5), *recalls("ac", 5, "another")], [])
    assert (joined.source_id, joined.target_id) == ("a", "c") and joined.weight == pytest.approx(0.3 + 0.7 * 6 / 7)


def test_results_beyond_the_tenth_are_not_joined_and_the_order_of_recalls_does_not_matter() -> None:
    ids = "abcdefghijklmn"
    found = co_recalled(recalls(ids, 5), [])
    assert len(found) == DEPTH * (DEPTH - 1) // 2
    assert co_recalled(reversed(recalls(ids, 5)), []) == found


def test_an_edge_that_weighs_as_much_already_is_left_and_a_lighter_one_grows() -> None:
    [one] = co_recalled(recalls("ab", 5), [])
    kept = Edge("a", "b", "rem", one.weight)
    assert co_recalled(recalls("ab", 5), [kept]) == []
    assert co_recalled(recalls("ab", 5), [Edge("a", "b", "rem", REM_WEIGHT)]) == [one]
    assert co_recalled(recalls("ab", 5), [Edge("a", "b", "similar", 1.0)]) == [one], "meaning is another edge"


def together(pairs: dict[tuple[int, int], float], count: int) -> Together:
    both = [(one, other, strength) for (a, b), strength in pairs.items() for one, other in ((a, b), (b, a))
            for strength in [strength]]  # fmt: skip
    rows, others, strengths = (np.array(values) for values in zip(*both, strict=True))
    most = np.zeros(count)
    np.maximum.at(most, rows, strengths)
    return Together(rows.astype(int), others.astype(int), strengths, most)


def test_scores_rise_only_where_the_best_were_recalled_together() -> None:
    scores = np.linspace(1.0, 0.4, 8)
    clique = {
        (one, other): rank_strength(one + 1) * rank_strength(other + 1)
        for one in range(ANCHORS)
        for other in range(one + 1, ANCHORS)
    }
    gained = recalled_scores(together({**clique, (0, 7): 0.8}, 8), scores)
    assert gained[7] == pytest.approx(RECALLED_SHARE * (0.8 + 0.8)), "by its place, and beside the best"
    assert gained[5] == gained[6] == 0.0
    assert not recalled_scores(together({(6, 7): 1.0}, 8), scores).any(), "another question's answer"
    few = recalled_scores(together({(0, 1): 0.8, (0, 7): 0.8}, 8), scores)
    assert not few.any(), "two of five met by chance"
    assert recalled_scores(together({(0, 1): 0.8}, 2), np.array([0.5, 0.4])).max() <= RECALLED_SHARE


async def ids_of(agent: Agent, topK: int = 10) -> list[str]:
    return [row["fingerprintId"] for row in (await agent.call("search_graph", query=QUESTION, topK=topK))["results"]]


async def test_a_dream_brings_what_was_recalled_together_nearer_and_no_other_question(
    agent: Agent, node: EmbeddingNode
) -> None:
    node.is_slow = True  # words and what was recalled rank alone
    for number in range(8):  # the longer, the lower: no two score alike
        await agent.call("store_memory", content="the harbour tide turns" + " and turns later" * number)
    for number in range(3):
        await agent.call("store_memory", content=f"bread rises overnight {number}")
    before = await ids_of(agent)
    other = await agent.call("search_graph", query="bread rises overnight")
    best, last = before[:ANCHORS], before[7]
    changes = [
        {"source_id": one.source_id, "target_id": one.target_id, "kind": one.kind, "weight": one.weight}
        for one in co_recalled([Recall("q", (*best, last), (0.5,) * 6, NOON)] * 5, [])
    ]
    strong = [{"source_id": best[0], "target_id": last, "kind": "rem", "weight": 1.0}]

    def dream(told: list[dict[str, object]], number: int) -> None:
        event = Event(f"dream-{number}", "test", EDGES_CHANGED, "default", node.clock.now(),
                      {"dream_id": "d", "changes": told})  # fmt: skip
        node.process([node.store.record(encode(DERIVED.name, event))])

    leaps = [{**change, "weight": REM_WEIGHT} for change in changes]
    dream(leaps, 1)
    assert await ids_of(agent) == before, "what a dream found by itself changes no order"
    dream([*changes, *strong], 2)
    after = await ids_of(agent)
    assert after.index(last) < before.index(last) and set(after) == set(before)
    again = await agent.call("search_graph", query="bread rises overnight")
    assert [row["score"] for row in again["results"]] == [row["score"] for row in other["results"]]
    dream([{**change, "is_removed": True} for change in (*changes, *strong)], 3)
    assert await ids_of(agent) == before, "an edge that went changes nothing"
