"""What searches returned together: the edges that a dream draws of it, and what they change."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest

from processors.context_graph.rules.co_recall import DEPTH, FULL_RECALLS, Recall, co_recalled
from processors.context_graph.rules.edges import Edge
from storage.search.ranking.ranks import rank_strength
from storage.search.ranking.weights import ANCHORS, RECALLED_SHARE, VOICE_SHARE, Evidence, recalled_scores, voices
from storage.search.records.relations import Together
from storage.search.records.speakers import NOBODY, Speakers, speaker_of
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
    return Together(rows.astype(int), others.astype(int), strengths, np.zeros(count))


def test_scores_rise_only_where_the_best_were_recalled_together() -> None:
    scores = np.linspace(1.0, 0.4, 8)
    clique = {
        (one, other): rank_strength(one + 1) * rank_strength(other + 1)
        for one in range(ANCHORS)
        for other in range(one + 1, ANCHORS)
    }
    nobody = np.zeros(8)
    gained = recalled_scores(together({**clique, (0, 7): 0.8, (6, 7): 0.5}, 8), scores, nobody)
    assert gained[7] == pytest.approx(RECALLED_SHARE * (0.8 + 0.5)), "beside the best, and in another answer"
    assert gained[6] == pytest.approx(RECALLED_SHARE * 0.5) and gained[5] == 0.0
    assert not recalled_scores(together({(6, 7): 1.0}, 8), scores, nobody).any(), "another question's answer"
    few = together({(0, 1): 0.8, (0, 7): 0.8}, 8)
    assert not recalled_scores(few, scores, np.ones(8)).any(), "two of five met by chance"
    spoken = recalled_scores(together(clique, 8), scores, np.array([0, 0, 0, 0, 0, 0, 1.0, 0.5]))
    assert spoken[6:] == pytest.approx(VOICE_SHARE * np.array([1.0, 0.5]) * scores[6:]), "whose words are wanted"
    assert recalled_scores(together({(0, 1): 0.8}, 2), np.array([0.5, 0.4]), np.zeros(2)).max() <= RECALLED_SHARE


def test_the_speaker_that_is_wanted_is_the_one_named_and_the_one_of_most_results() -> None:
    ana, ben = 3, 7
    scores = np.linspace(1.0, 0.5, 5)
    mixed = Evidence(5, speakers=np.array([ana, ben, ana, ben, NOBODY]), named=[ana])
    assert voices(mixed, scores) == pytest.approx([0.5, 0, 0.5, 0, 0]), "named, and nobody gives most of the results"
    one = Evidence(5, speakers=np.array([ana, ana, ana, ana, ben]))
    assert voices(one, scores)[0] > 0.25 and voices(one, scores)[4] == 0, "none is named, one gives most"
    both = Evidence(5, speakers=np.array([ana, ben, ana, ben, ben]), named=[ana, ben])
    assert voices(both, scores) == pytest.approx(np.zeros(5), abs=0.1), "two are named"
    assert not voices(Evidence(5), scores).any(), "no text names its speaker"


def test_a_speaker_is_the_name_that_a_text_begins_with() -> None:
    assert speaker_of("Ana: I sold the boat") == "ana" and speaker_of("  Dr. Ana Lund : yes") == "dr. ana lund"
    assert speaker_of("I met Ana: she sold it to the harbour master") is None, "a sentence"
    assert speaker_of("小明：你好") == "小明" and speaker_of("fix: round half even") is None
    assert speaker_of("12: a number") is None and speaker_of("https://ana.example") is None
    speakers = Speakers()
    speakers.add([(1, "Ana: hello"), (2, "Ben: hello"), (3, "hello"), (4, "Dr. Lund: hello")])
    assert speakers.among(np.array([1, 2, 3])).tolist() == [0, 1, NOBODY]
    assert speakers.named("What did Ana's brother say to dr. Lund?") == [0, 2]
    speakers.remove([1])
    assert speakers.among(np.array([1])).tolist() == [NOBODY]


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
