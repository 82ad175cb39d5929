"""Sentences of the specification about insights, episodes and the golden test that no other test pins."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import Request
from mcp_ingress.toolsets.cognitive_memory.judges import configured
from processors.cognitive.config import CognitiveConfig
from processors.cognitive.rules import agreement
from processors.cognitive.rules.ranking import word_similarity
from processors.embedding.hashing import HashingEmbedder
from streams.errors import SettingsError
from streams.log.base import Outgoing
from streams.positions import Position
from tests.cognitive.node import CognitiveNode, opened
from tests.prefixed import Prefixed
from tests.processors.harness import event
from thalweg.settings import Settings


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[CognitiveNode]:
    async with opened(tmp_path) as node:
        yield node


async def test_each_side_is_by_user_three_times_as_many_as_are_shown(node: CognitiveNode) -> None:
    for number in range(20):
        await node.ok("compress_to_l2_insight", content=f"rivers carve valley {number}", source_ids=[])
    found = await node.ok("hybrid_search", query_text="rivers carve")
    assert (found["semantic_results_count"], found["keyword_results_count"], found["final_results_count"]) == (
        15,
        15,
        5,
    )
    words = await node.ok("hybrid_search", query_text="rivers carve", weights={"semantic": 0, "keyword": 1}, top_k=100)
    assert (words["semantic_results_count"], words["keyword_results_count"], words["final_results_count"]) == (
        0,
        20,
        20,
    )
    assert all(each["semantic_rank"] is each["distance"] is None for each in words["results"])
    scores = [each["score"] for each in words["results"]]
    assert scores == sorted(scores, reverse=True) and scores[0] == 1.0


async def test_parts_of_words_are_found_from_a_similarity_of_thirty_hundredths_on(node: CognitiveNode) -> None:
    # of the six trigrams of "river" the first has two, though none within the word; the second has one
    near = await node.ok("compress_to_l2_insight", content="rill", source_ids=[])
    await node.ok("compress_to_l2_insight", content="roof", source_ids=[])
    found = await node.ok("hybrid_search", query_text="river", weights={"semantic": 0, "keyword": 1})
    assert [each["id"] for each in found["results"]] == [near["id"]]
    at = await node.ok("compress_to_l2_insight", content="estuary", source_ids=[])
    assert word_similarity("estimates", "estuary") == 0.3  # three of ten: exactly at the bound
    found = await node.ok("hybrid_search", query_text="estimates", weights={"semantic": 0, "keyword": 1})
    assert [each["id"] for each in found["results"]] == [at["id"]]


async def test_a_query_of_over_thirty_seconds_is_an_operation_of_the_store_that_failed(
    node: CognitiveNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = [tool for tool in node.door.inventory.tools.values() if tool.toolset == "cognitive_memory"]
    asks_others = {"store_dual_judge_scores", "get_golden_test_results"}
    assert max(tool.timeout_s for tool in tools if tool.name not in asks_others) == 30.0
    slow = replace(node.door.inventory.tools["hybrid_search"], timeout_s=0.05)
    monkeypatch.setitem(node.door.inventory.tools, "hybrid_search", slow)
    monkeypatch.setattr(node.services.reader, "run", lambda query: asyncio.sleep(60))
    answer = await node.error("hybrid_search", query_text="rivers")
    assert answer["error"] == "Database operation failed" and "0.05 s" in answer["details"]


async def test_without_a_model_a_search_needs_the_callers_vector_and_what_is_stored_has_none(
    node: CognitiveNode,
) -> None:
    vector = HashingEmbedder().encode(["rivers carve valleys"])[0].astype(float).tolist()
    await node.ok("compress_to_l2_insight", content="rivers carve valleys", source_ids=[])
    node.services.embedder = None
    assert (await node.error("hybrid_search", query_text="rivers"))["error"] == "Tool execution failed"
    given = await node.ok("hybrid_search", query_text="unsaid", query_embedding=[2 * number for number in vector])
    assert given["results"][0]["distance"] == pytest.approx(0, abs=1e-5)  # at whatever length
    assert (await node.ok("compress_to_l2_insight", content="banks give way", source_ids=[]))[
        "embedding_status"
    ] == "failed"
    assert (await node.ok("store_episode", query="q", reward=0, reflection="Problem: a. Lesson: b."))[
        "embedding_status"
    ] == "failed"


async def test_what_is_not_applied_in_time_is_pending_under_the_ids_that_it_will_have(node: CognitiveNode) -> None:
    applied, waiting = node.publish, list[Sequence[Outgoing]]()

    async def later(records: Sequence[Outgoing], *, timeout_s: float = 5.0) -> list[Position]:
        waiting.append(records)
        return [Position(record.topic, 0, 0) for record in records]

    calls: dict[str, dict[str, Any]] = {
        "compress_to_l2_insight": {"content": "rivers carve valleys", "source_ids": []},
        "store_episode": {"query": "why", "reward": 0.5, "reflection": "Problem: a. Lesson: b."},
        "update_working_memory": {"content": "an item"},
    }
    for tool, arguments in calls.items():
        node.publish = later  # type: ignore[method-assign]
        answer = await node.ok(tool, **arguments)
        assert answer["pending"] is True and answer["status"] == "success" and answer["freshness"]
        node.publish = applied  # type: ignore[method-assign]
        await applied(next(records for records in waiting if records[0].topic == "thalweg.memory.v1"))
        waiting.clear()
        if tool == "update_working_memory":
            assert answer["evicted_id"] is answer["archived_id"] is None
            assert node.store.sql("SELECT id FROM working_memory") == [(answer["added_id"],)]
        else:
            assert answer["embedding_status"] == "pending"
            table = "l2_insights" if tool == "compress_to_l2_insight" else "episode_memory"
            assert node.store.sql(f"SELECT id FROM {table}") == [(answer["id"],)]


async def test_a_read_that_does_not_reach_its_token_in_time_says_that_it_is_stale(node: CognitiveNode) -> None:
    ahead = {"thalweg/freshness": {"thalweg.memory.v1": {"0": 10**6}}}
    answer = await node.door.call(node.visitor, Request("hybrid_search", {"query_text": "rivers"}, ahead))
    assert not answer.is_error and answer.body["stale"] is True
    read = await node.door.read(node.visitor, "memory://l0-raw", ahead)
    assert read.body["stale"] is True and read.body["contents"] == []


async def test_the_threshold_of_density_is_set_and_how_much_of_its_sources_an_insight_means_is_told(
    node: CognitiveNode,
) -> None:
    assert configured(Settings(), None, {"FIDELITY_THRESHOLD": "0.9"}).fidelity_threshold == 0.9
    with pytest.raises(SettingsError, match="FIDELITY_THRESHOLD"):
        configured(Settings(), None, {"FIDELITY_THRESHOLD": "dense"})
    node.services.parts[CognitiveConfig] = replace(node.services.part(CognitiveConfig), fidelity_threshold=0.9)
    said = [
        await node.ok("store_raw_dialogue", session_id="s", speaker="user", content=text)
        for text in ("rivers carve", "deep valleys")
    ]
    text = "the rivers carve deep valleys"
    answer = await node.ok("compress_to_l2_insight", content=text, source_ids=[line["id"] for line in said])
    assert answer["fidelity_score"] == 0.8 and answer["metadata"]["warning_message"].startswith(
        "Low information density (0.80 < 0.90)"
    )
    one, other = HashingEmbedder().encode([text, "rivers carve\ndeep valleys"])
    assert answer["metadata"]["source_coverage"] == pytest.approx(float(one @ other), abs=1e-6)


def completed(node: CognitiveNode, day: date, precision: float, number: int = 0) -> None:
    classes = {name: {"count": 0, "precision_at_5": None} for name in ("short", "medium", "long")}
    data = {"date": day.isoformat(), "precision_at_5": precision, "queries_tested": 50, "query_breakdown": classes}
    node.store.publish(event("cm.golden.completed", data, id=f"{day}-{number}"))


async def test_a_baseline_is_the_mean_of_the_week_before_and_the_days_second_run_replaces_the_first(
    node: CognitiveNode,
) -> None:
    day = node.clock.now().date()
    for back in range(30, 0, -1):
        completed(node, day - timedelta(days=back), 0.1 if back > 7 else 0.8)
    completed(node, day, 0.1)
    completed(node, day, 0.74, number=1)
    row = "SELECT precision_at_5, round(baseline_precision, 9), drift_detected FROM model_drift_log WHERE date = ?"
    assert node.store.sql(row, day) == [(0.74, 0.8, True)]  # neither older days nor the day itself count
    [(result,)] = node.store.sql("SELECT result::VARCHAR FROM outcomes WHERE request_id = ?", f"{day}-1")
    assert '"drop_absolute":0.06' in result and '"drop_relative":0.075' in result
    assert '"details":"Precision@5 dropped by 0.06 from baseline 0.80"' in result


@pytest.mark.parametrize(
    ("kappa", "name"),
    [
        (-0.01, "poor"),
        (0, "slight"),
        (0.2099, "slight"),
        (0.21, "fair"),
        (0.41, "moderate"),
        (0.61, "substantial"),
        (0.81, "almost perfect"),
    ],
)
def test_an_agreements_name_begins_at_its_bound(kappa: float, name: str) -> None:
    assert agreement.agreement(kappa) == name


async def test_a_text_is_read_as_what_it_is_a_query_or_a_document(node: CognitiveNode) -> None:
    line = await node.ok("store_raw_dialogue", session_id="s", speaker="user", content="a line")
    node.services.embedder = model = Prefixed()
    await node.ok("compress_to_l2_insight", content="an insight", source_ids=[line["id"]])
    await node.ok("hybrid_search", query_text="asked")
    await node.read("memory://l2-insights?query=read")
    await node.read("memory://episode-memory?query=an+episode")
    assert model.read == [
        "passage: an insight",
        "passage: a line",
        "query: asked",
        "query: read",
        "passage: an episode",
    ]
