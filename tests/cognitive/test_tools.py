"""The eight tools through the door: the reference's printed examples, the errors, and what is accepted."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from storage.reader import find_outcome, outcome_of
from streams.log.base import Outgoing
from streams.topics import MEMORY
from tests.cognitive.node import CognitiveNode, opened
from tests.processors.harness import event

INVALID = "Parameter validation failed"


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[CognitiveNode]:
    async with opened(tmp_path) as node:
        yield node


async def test_the_references_example_of_raw_dialogue(node: CognitiveNode) -> None:
    said = {
        "session_id": "conversation-2025-01-15",
        "speaker": "user",
        "content": "What is consciousness and how does it relate to memory?",
    }
    answer = await node.ok("store_raw_dialogue", **said, metadata={"context": "philosophical discussion"})
    assert answer.keys() >= {"id", "timestamp", "session_id", "status", "freshness"} and answer["status"] == "success"
    assert 1 <= answer["id"] < 2**53 and answer["timestamp"].endswith("Z")
    (line,) = await node.read("memory://l0-raw?session_id=conversation-2025-01-15")
    assert line["metadata"] == {"context": "philosophical discussion"} and line["id"] == answer["id"]
    await node.ok("store_raw_dialogue", **said)
    assert len(await node.read("memory://l0-raw")) == 2


async def test_an_insight_says_its_density_its_sources_and_is_found(node: CognitiveNode) -> None:
    ids = [
        (await node.ok("store_raw_dialogue", session_id="s", speaker="user", content=text))["id"]
        for text in ("alpha beta", "gamma")
    ]
    text = "Machine learning algorithms analyze complex mathematical patterns efficiently"
    answer = await node.ok("compress_to_l2_insight", content=text, source_ids=ids)
    assert (
        answer["fidelity_score"] == 1.0
        and answer["embedding_status"] == "success"
        and answer["metadata"]["fidelity_warning"] is False
    )
    assert 0 <= answer["metadata"]["source_coverage"] <= 1
    found = await node.ok("hybrid_search", query_text=text)
    (best,) = found["results"]
    assert (best["id"], best["source_ids"], best["semantic_rank"], best["keyword_rank"]) == (answer["id"], ids, 1, 1)
    assert best["score"] == 1.0 and best["rrf_score"] == round(1 / 61, 6) and abs(best["distance"]) < 1e-5
    assert found["query_embedding_dimension"] == 384 and found["weights"] == {"semantic": 0.7, "keyword": 0.3}
    rows = node.store.sql("SELECT source_id FROM l2_compressions ORDER BY place")
    assert [row[0] for row in rows] == ids


async def test_unknown_sources_are_refused_by_number_and_none_at_all_are_accepted(node: CognitiveNode) -> None:
    error = await node.error("compress_to_l2_insight", content="some text", source_ids=[7, 9])
    assert (error["error"], error["details"], error["embedding_status"]) == (
        INVALID,
        "Unknown source_ids: [7, 9]",
        "failed",
    )
    answer = await node.ok("compress_to_l2_insight", content="of the and", source_ids=[])
    assert answer["metadata"]["source_coverage"] is None and answer["metadata"]["warning_message"].startswith(
        "Low information density (0.00 < 0.50)"
    )


async def test_the_weights_the_dimension_and_the_bounds_of_a_search_are_checked(node: CognitiveNode) -> None:
    await node.ok("compress_to_l2_insight", content="rivers carve valleys", source_ids=[])
    for arguments, details in (
        ({"weights": {"semantic": 0.5}}, "Weights must sum to 1.0, got 0.8"),
        ({"query_embedding": [0.1] * 1536}, "Invalid embedding dimension: 1536. Expected 384."),
    ):
        error = await node.error("hybrid_search", query_text="rivers", **arguments)
        assert (error["error"], error["details"]) == (INVALID, details)
    wrong: Any
    for wrong in (
        {"top_k": 0},
        {"top_k": 101},
        {"limit": 3},
        {"weights": {"semantic": 1.1, "keyword": -0.1}},
        {"query_embedding": [0.0] * 384},
    ):
        assert (await node.error("hybrid_search", query_text="rivers", **wrong))["error"] == INVALID
    plain = await node.ok("hybrid_search", query_text="rivers")
    given = await node.ok(
        "hybrid_search", query_text="rivers", query_embedding=node.embedder.encode(["rivers"])[0].astype(float).tolist()
    )
    assert given["results"] == plain["results"]
    one_sided = await node.ok("hybrid_search", query_text="rivers", weights={"semantic": 1, "keyword": 0})
    assert one_sided["keyword_results_count"] == 0 and one_sided["semantic_results_count"] == 1


async def test_nothing_stored_is_an_empty_answer_and_parts_of_words_are_found(node: CognitiveNode) -> None:
    assert (await node.ok("hybrid_search", query_text="anything"))["results"] == []
    await node.ok("compress_to_l2_insight", content="Donaudampfschifffahrtsgesellschaft fährt stromauf", source_ids=[])
    found = await node.ok("hybrid_search", query_text="dampfschiff", weights={"semantic": 0, "keyword": 1})
    assert found["keyword_results_count"] == 1


async def test_what_was_said_three_times_is_one_row_by_words_and_by_parts_of_words(node: CognitiveNode) -> None:
    for content in ("Tides rise twice a day", "tides RISE twice a day.", "Tides rise  twice a day."):
        await node.ok("compress_to_l2_insight", content=content, source_ids=[])
    for query in ("when do tides rise", "tidesrise twi"):  # words, and no whole word of it
        found = await node.ok("hybrid_search", query_text=query)
        assert [row["times"] for row in found["results"]] == [3], query
        assert found["keyword_results_count"] == found["final_results_count"] == 1


async def test_working_memory_answers_what_it_evicted(node: CognitiveNode) -> None:
    answers = []
    for number in range(11):
        answers.append(await node.ok("update_working_memory", content=f"item {number}"))
        node.clock.time += timedelta(seconds=1)
    assert all(answer["evicted_id"] is None for answer in answers[:10])
    assert answers[10]["evicted_id"] == answers[0]["added_id"]
    (stale,) = await node.read("memory://stale-memory?reason=LRU_EVICTION&days_back=7")
    assert stale["id"] == answers[10]["archived_id"] and stale["original_content"] == "item 0"
    assert await node.read("memory://stale-memory?reason=MANUAL_ARCHIVE") == []
    items = await node.read("memory://working-memory")
    assert [item["content"] for item in items] == [f"item {number}" for number in range(10, 0, -1)]
    assert (await node.error("update_working_memory", content="x", importance=1.1))["error"] == INVALID


async def test_the_references_example_of_an_episode_and_its_search(node: CognitiveNode) -> None:
    lesson = "Problem: asked twice. Lesson: read first."
    query = "How does working memory relate to consciousness?"
    answer = await node.ok("store_episode", query=query, reward=0.8, reflection=lesson)
    assert (answer["query"], answer["reward"], answer["embedding_status"]) == (
        query,
        0.8,
        "success",
    ) and "warnings" not in answer
    assert (await node.ok("store_episode", query=query, reward=-0.5, reflection="no form"))["warnings"]
    one, other = await node.read("memory://episode-memory?query=How+does+working+memory+relate+to+consciousness%3F")
    assert one["similarity"] == other["similarity"] == pytest.approx(1.0, abs=1e-5)
    assert (
        len(await node.read("memory://episode-memory?query=working+memory+consciousness&reward_min=0&min_similarity=0"))
        == 1
    )
    error = await node.error("store_episode", query=query, reward=1.01, reflection=lesson)
    assert error["error"] == INVALID and error["embedding_status"] == "failed"


def truth(node: CognitiveNode, number: int, session: str = "s-truth") -> None:
    data = {"id": number, "query": "How do rivers carve valleys?", "expected_docs": [1], "session_id": session}
    node.store.publish(event("cm.ground_truth.imported", data, id=f"truth-{number}"))


async def test_two_judges_tell_an_answer_from_an_unrelated_text(node: CognitiveNode) -> None:
    truth(node, 42)
    docs = [
        {"id": 1, "content": "How do rivers carve valleys? Rivers carve valleys by erosion."},
        {"id": 2, "content": "Invoices are due in May."},
    ]
    answer = await node.ok("store_dual_judge_scores", query_id=42, query="How do rivers carve valleys?", docs=docs)
    assert (
        answer["evaluated_documents"] == 2
        and answer["failed_documents"] == []
        and answer["agreement"]
        and answer["judge1_model"] != answer["judge2_model"]
    )
    for judge in ("judge1", "judge2"):
        relevant, unrelated = answer[f"{judge}_scores"]
        assert relevant > 0.5 > unrelated and answer[f"{judge}_score"] == pytest.approx((relevant + unrelated) / 2)
    assert answer["kappa"] == 1.0 and answer["kappa_degenerate"] is False
    assert (
        node.store.sql("SELECT kappa FROM ground_truth") == node.store.sql("SELECT kappa FROM judge_runs") == [(1.0,)]
    )
    single = await node.ok("store_dual_judge_scores", query_id=42, query="How do rivers carve valleys?", docs=docs[:1])
    assert single["kappa"] == 1.0 and single["kappa_degenerate"] is True


async def test_what_cannot_be_judged_is_refused(node: CognitiveNode) -> None:
    doc = {"id": 1, "content": "text"}
    error = await node.error("store_dual_judge_scores", query_id=42, query="q", docs=[doc])
    assert error["details"] == "query_id 42 does not exist in ground_truth"
    for docs in ([], [doc] * 2, [{"id": n, "content": "x"} for n in range(51)]):
        assert (await node.error("store_dual_judge_scores", query_id=42, query="q", docs=docs))["error"] == INVALID


def golden_set(expected: list[int]) -> list[dict[str, Any]]:
    sizes = [3] * 20 + [12] * 20 + [30] * 10
    return [
        {
            "query": " ".join(["rivers", "carve", *(f"w{number}" for _ in range(size - 2))]),
            "expected_docs": expected,
            "session_id": f"g{number}",
        }
        for number, size in enumerate(sizes)
    ]


@pytest.mark.process
async def test_a_golden_test_measures_with_the_same_search_and_needs_three_days_for_a_baseline(
    node: CognitiveNode,
) -> None:
    assert (await node.error("get_golden_test_results"))["details"] == "Golden test set is empty"
    ids = [
        (await node.ok("compress_to_l2_insight", content=f"rivers carve valley {n}", source_ids=[]))["id"]
        for n in range(2)
    ]
    node.store.publish(event("cm.golden_set.imported", {"queries": golden_set(ids)}, id="golden"))
    for day in range(4):
        answer = await node.ok("get_golden_test_results")
        assert answer["precision_at_5"] == pytest.approx(0.4) and answer["queries_tested"] == 50
        assert [answer["query_breakdown"][kind]["count"] for kind in ("short", "medium", "long")] == [20, 20, 10]
        assert answer["details"] == (
            f"Baseline needs 3 days of results; {day} recorded" if day < 3 else "All metrics within normal range"
        )
        again = await node.ok("get_golden_test_results")
        assert again["date"] == answer["date"]
        node.clock.time += timedelta(days=1)
    assert node.store.sql("SELECT count(*) FROM model_drift_log") == [(4,)]


async def test_a_golden_test_that_could_not_see_the_latest_insights_says_stale(node: CognitiveNode) -> None:
    identity = (await node.ok("compress_to_l2_insight", content="rivers carve valleys", source_ids=[]))["id"]
    node.store.publish(event("cm.golden_set.imported", {"queries": golden_set([identity])}, id="golden"))
    assert "stale" not in await node.ok("get_golden_test_results")
    await node.services.spool.append([Outgoing(MEMORY.name, b"default", b"an insight")])
    answer = await node.ok("get_golden_test_results")
    assert answer["stale"] is True and answer["spooled"] is True


async def test_a_golden_set_is_checked_immutable_and_shares_no_session_with_the_ground_truth(
    node: CognitiveNode,
) -> None:
    truth(node, 42, session="g7")
    node.store.publish(event("cm.golden_set.imported", {"queries": golden_set([1])}, id="shared"))
    node.store.publish(event("cm.golden_set.imported", {"queries": golden_set([1])[:49]}, id="few"))
    others = [query | {"session_id": "other-" + query["session_id"]} for query in golden_set([1])]
    node.store.publish(event("cm.golden_set.imported", {"queries": others}, id="good"))
    node.store.publish(event("cm.golden_set.imported", {"queries": others}, id="again"))
    rows = dict(node.store.sql("SELECT request_id, coalesce(message, status) FROM outcomes"))
    assert (
        "share no session" in rows["shared"]
        and "50 to 100" in rows["few"]
        and rows["good"] == "applied"
        and "does not change" in rows["again"]
    )


async def test_a_ground_truth_has_one_query_for_an_id_and_no_session_of_the_golden_set(node: CognitiveNode) -> None:
    imported = {"id": 42, "query": "How do rivers carve?", "expected_docs": [1], "session_id": "s-truth"}
    node.store.publish(event("cm.golden_set.imported", {"queries": golden_set([1])}, id="golden"))
    changed = {
        "first": {},
        "again": {},
        "another": {"query": "Why do caches lie?"},
        "blank": {"id": 43, "query": " "},
        "nowhere": {"id": 44, "session_id": "\t"},
        "golden": {"id": 45, "session_id": "g7"},
    }
    for name, data in changed.items():
        node.store.publish(event("cm.ground_truth.imported", imported | data, id=f"truth-{name}"))
    rows = dict(node.store.sql("SELECT request_id, coalesce(message, status) FROM outcomes"))
    assert rows["truth-first"] == rows["truth-again"] == "applied"
    assert rows["truth-another"] == "The ground truth holds another query under the id 42."
    assert "query" in rows["truth-blank"] and "session_id" in rows["truth-nowhere"]
    assert rows["truth-golden"] == "The session g7 belongs to golden_test_set; the sets share no session."
    assert node.store.sql("SELECT id, query FROM ground_truth") == [(42, "How do rivers carve?")]


async def test_a_golden_set_names_each_query_once_and_each_with_a_session(node: CognitiveNode) -> None:
    twice, nowhere = golden_set([1]), golden_set([1])
    twice[1] = twice[0]
    nowhere[3] = nowhere[3] | {"session_id": " "}
    node.store.publish(event("cm.golden_set.imported", {"queries": twice}, id="twice"))
    node.store.publish(event("cm.golden_set.imported", {"queries": nowhere}, id="nowhere"))
    rows = dict(node.store.sql("SELECT request_id, message FROM outcomes"))
    assert rows["twice"] == "The golden test set names a query twice."
    assert "belongs to nobody" in rows["nowhere"]
    assert node.store.sql("SELECT count(*) FROM golden_test_set") == [(0,)]


async def test_ping_answers_also_when_the_store_is_down(node: CognitiveNode) -> None:
    node.reader.is_down = True
    answer = await node.ok("ping")
    assert (answer["response"], answer["tool"], answer["status"]) == ("pong", "ping", "ok")
    error = await node.error("hybrid_search", query_text="x")
    assert error["error"] == "Database operation failed"


async def test_an_outcome_that_is_still_in_memory_is_the_one_that_the_store_holds(node: CognitiveNode) -> None:
    await node.ok("update_working_memory", content="what is at hand", importance=0.7)
    await node.ok("compress_to_l2_insight", content="Gravity bends light", source_ids=[])
    await node.error("compress_to_l2_insight", content="some text", source_ids=[7])
    requests = node.store.sql("SELECT namespace, request_id, status FROM outcomes")
    assert {status for _, _, status in requests} == {"applied", "refused"}
    for namespace, request_id, _ in requests:
        lately = node.store.writer.recent("outcomes", (namespace, request_id))
        stored = await node.reader.run(partial(find_outcome, namespace=namespace, request_id=request_id))
        assert lately is not None and outcome_of(lately) == stored


async def test_an_insight_that_changes_another_stands_before_it_and_both_say_so(node: CognitiveNode) -> None:
    older, newer = ("The gateway of the harbour listens on port " + port for port in ("8080.", "8443."))
    ids = []
    for content in (older, newer):
        ids.append((await node.ok("compress_to_l2_insight", content=content, source_ids=[]))["id"])
        node.clock.time += timedelta(seconds=1)
    rows = (await node.ok("hybrid_search", query_text=older))["results"]
    assert [row["id"] for row in rows] == ids[::-1] and rows[0]["score"] == rows[1]["score"]
    assert len(rows[0]["earlier"]) == len(rows[1]["disputed_by"]) == 1
