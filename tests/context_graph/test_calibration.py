"""Calibration through the door: judged results correct the relevance of the next search, and say so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any, cast

import pytest

from mcp_ingress.toolsets.context_graph.get_calibration_metrics import TIMEFRAMES
from processors.context_graph.reducers import calibration as reducers
from processors.context_graph.rules.calibration import LEAST_JUDGEMENTS
from processors.context_graph.timers.recalibrate import RECALIBRATE
from processors.memory.rules.relevance import Calibration
from streams.log.base import Log
from tests.context_graph.conftest import ModelNode
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

STATUS, METRICS, TRIGGER = "get_threshold_status", "get_calibration_metrics", "trigger_recalibration"
SAID = (
    "Invoices are rounded half to even, because the auditors of the tax office asked for it.",
    "The staging database is wiped every Sunday night by a cron job.",
    "Maria owns the payment gateway; ask her before you touch its retries.",
    "Passwords are hashed with argon2id, 64 MiB and three passes.",
    "Deployments freeze from 20 December to 6 January.",
    "The flaky login test fails when two workers share one browser profile.",
    "Images larger than 4 MB are shrunk by a background worker before they reach the CDN.",
    "The public API answers 429 above 100 requests a minute for each key.",
    "Logs are kept for ninety days and then moved to cold storage.",
    "The mobile app must work without a network for two days.",
    "Feature flags live in the settings table and are cached for a minute.",
)
ASKED = "who owns the payment gateway?"
NEVER = "Which spices go into the biryani of the tax adviser?"


@pytest.fixture
async def judge(agent: Agent) -> AsyncIterator[Agent]:
    """An agent with memories, whose searches are left on the log; its model has no tokens."""
    for text in SAID:
        await agent.call("store_memory", content=text)
    agent.door.start()
    yield agent
    await agent.door.stop()


async def judged(agent: Agent, found: dict[str, Any], feedback: str, times: int = LEAST_JUDGEMENTS) -> None:
    """The rows of a search, from the last on, judged as often as is asked for."""
    ids = [row["fingerprintId"] for row in reversed(found["results"])]
    for number in range(times):
        about = {"query_vector_id": found["query_vector_id"], "result_vector_id": ids[number % len(ids)]}
        answer = await agent.call("update_synergy_matrix", **about, feedback=feedback)
        assert answer["success"], answer


async def test_judged_results_correct_the_relevance_of_the_next_search_and_not_its_order(model_node: ModelNode) -> None:
    agent = Agent(model_node)
    for text in SAID:
        await agent.call("store_memory", content=text)
    agent.door.start()
    try:
        first = await agent.call("search_graph", query=ASKED)
        best, *rest = first["results"]
        assert best["content"] == SAID[2] and not first["nothing_relevant"]
        assert best["relevance"] > 0.8 > 0.5 > max(row["relevance"] for row in rest)
        never = await agent.call("search_graph", query=NEVER)
        assert never["nothing_relevant"] and never["count"] and max(r["relevance"] for r in never["results"]) < 0.5
        recalled = await agent.call("recall", query=ASKED)
        assert recalled["results"][0]["relevance"] == pytest.approx(best["relevance"], abs=0.006)
        assert "nothing_relevant" not in recalled and (await agent.call("recall", query=NEVER))["nothing_relevant"]
        alone = await agent.call("search_graph", query=ASKED, topK=1)
        assert alone["results"][0]["relevance"] == best["relevance"], "the rows that are shown do not count"
        strict = await agent.call("search_graph", query=ASKED, minSimilarity=1.0)
        assert (strict["results"], strict["nothing_relevant"]) == ([], False)

        await judged(agent, first, "not_relevant", 2 * LEAST_JUDGEMENTS)
        answer = await agent.call(TRIGGER, level=2)
        assert answer["success"] and answer["recalibration"]["level_name"] == "Temperature scaling"
        assert answer["metrics_after"]["brier"] < answer["metrics_before"]["brier"]
        changes = {change["name"]: change["new"] for change in answer["recalibration"]["changes"]}
        status = await agent.call(STATUS)
        learned = Calibration(**status["relevance"])
        assert changes["relevance.offset"] == learned.offset < 0 and "similarity.offset" not in changes
        second = await agent.call("search_graph", query=ASKED)
        assert [row["fingerprintId"] for row in second["results"]] == [row["fingerprintId"] for row in first["results"]]
        for before, after in zip(first["results"], second["results"], strict=True):
            assert after["score"] == before["score"]
            corrected = learned.corrected(before["relevance"])
            assert after["relevance"] == pytest.approx(corrected, abs=0.03), "what is shown has three digits"
        assert second["results"][0]["relevance"] < best["relevance"]
        known = await agent.call("recall", query=ASKED)
        assert known["results"][0]["relevance"] == pytest.approx(second["results"][0]["relevance"], abs=0.006)
    finally:
        await agent.door.stop()


async def test_without_token_vectors_no_relevance_is_said(judge: Agent) -> None:
    found = await judge.call("search_graph", query=ASKED)
    assert found["results"] and all(row["relevance"] is None for row in found["results"])
    assert found["nothing_relevant"] is False
    assert not any("relevance" in row for row in (await judge.call("recall", query=ASKED))["results"])


async def test_before_ten_judgements_nothing_is_measured_and_nothing_changes(judge: Agent, node: EmbeddingNode) -> None:
    found = await judge.call("search_graph", query=ASKED)
    await judged(judge, found, "relevant", LEAST_JUDGEMENTS - 1)
    before = await judge.call(STATUS)
    for level in (1, 2, 3, 4):
        answer = await judge.call(TRIGGER, level=level)
        assert (answer["success"], answer["reason"]) == (False, "insufficient_data")
        assert answer["recalibration"]["changes"] == [] and answer["metrics_after"]["ece"] is None
        assert answer["metrics_before"]["sample_count"] == LEAST_JUDGEMENTS - 1
    assert await judge.call(STATUS) == before
    measured = await judge.call(METRICS)
    assert (measured["status"], measured["metrics"]["brier"]) == ("insufficient_data", None)
    assert not measured["should_recalibrate"] and "update_synergy_matrix" in measured["recommendations"][0]


async def test_judged_similarities_are_measured_in_their_timeframe(judge: Agent, node: EmbeddingNode) -> None:
    empty = await judge.call(METRICS)
    assert (empty["timeframe"], empty["metrics"]["sample_count"], empty["metrics"]["ece"]) == ("24h", 0, None)
    assert (empty["metrics"]["ece_target"], empty["metrics"]["ece_acceptable"]) == (0.05, 0.10)
    found = await judge.call("search_graph", query=ASKED)
    await judged(judge, found, "relevant")
    measured = await judge.call(METRICS, timeframe="1h")
    said = [row["similarity"] for row in reversed(found["results"])][:LEAST_JUDGEMENTS]
    wrong = sum((1 - each) ** 2 for each in said) / len(said)
    assert measured["metrics"]["brier"] == pytest.approx(wrong, abs=1e-4) and measured["should_recalibrate"]
    assert measured["status"] == "Critical" and "E1" in measured["poorly_calibrated_embedders"]
    node.clock.time += TIMEFRAMES["24h"] + timedelta(minutes=1)
    assert (await judge.call(METRICS))["metrics"]["sample_count"] == 0
    week = await judge.call(METRICS, timeframe="7d")
    assert week["metrics"]["sample_count"] == LEAST_JUDGEMENTS
    assert any("24 hours" in sentence for sentence in week["recommendations"])


async def test_the_hour_recalibrates_once_what_was_judged_since(judge: Agent, node: EmbeddingNode) -> None:
    async def due() -> int:
        return await RECALIBRATE.publish_due(node.reader, cast(Log, node), node.clock.now())

    found = await judge.call("search_graph", query=ASKED)
    await judged(judge, found, "not_relevant", LEAST_JUDGEMENTS - 1)
    assert await due() == 0
    await judged(judge, found, "not_relevant", 1)
    assert await due() == 1
    learned = (await judge.call(STATUS))["similarity"]
    assert learned != {"temperature": 1.0, "offset": 0.0}
    await judged(judge, found, "relevant", 1)
    assert await due() == 0, "one an hour"
    node.clock.time += timedelta(hours=1)
    assert await due() == 1
    assert await due() == 0, "nothing was judged since"


async def test_the_newest_judgements_are_kept(
    judge: Agent, node: EmbeddingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reducers, "KEPT", 3)
    found = await judge.call("search_graph", query=ASKED)
    await judged(judge, found, "relevant", 4)
    assert sorted(node.store.sql("SELECT slot, number FROM context_judgements")) == [(0, 4), (1, 2), (2, 3)]
    assert node.store.sql("SELECT judgements FROM context_calibrations") == [(4,)]


async def test_a_level_that_changes_a_threshold_shows_it_in_the_status(judge: Agent) -> None:
    found = await judge.call("search_graph", query="how are invoices, images and the API treated by the database?")
    assert found["results"][0]["similarity"] > found["results"][-1]["similarity"]
    await judged(judge, {**found, "results": found["results"][-1:]}, "not_relevant")
    await judged(judge, {**found, "results": found["results"][:1]}, "relevant", 5)
    answer = await judge.call(TRIGGER, level=1, domain="Legal")
    moved = {change["name"]: change for change in answer["recalibration"]["changes"]}
    assert moved["memory_sim"]["new"] > moved["memory_sim"]["old"] == 0.62
    legal, general = [(await judge.call(STATUS, domain=d))["thresholds"]["memory_sim"] for d in ("Legal", "General")]
    assert (legal["value"], legal["base"], legal["level"]) == (moved["memory_sim"]["new"], 0.62, 1)
    assert (general["value"], general["base"], general["level"]) == (0.5, 0.5, None)
    pulled = await judge.call(TRIGGER, level=3)
    status = await judge.call(STATUS)
    assert status["bandit"]["total_pulls"] == 20 and pulled["recalibration"]["action"] == "pull_arms"
    assert all((arm["ucb"] is None) == (arm["successes"] + arm["failures"] == 0) for arm in status["bandit"]["arms"])
    optimised = await judge.call(TRIGGER, level=4)
    assert optimised["success"] and "F1" in optimised["recalibration"]["description"]


async def test_before_any_judgement_the_status_has_what_each_domain_begins_with(asked: Agent) -> None:
    medical = await asked.call(STATUS, domain="Medical", embedder_id=5)
    general = await asked.call(STATUS)
    assert (medical["thresholds"]["theta_opt"]["value"], general["thresholds"]["theta_opt"]["value"]) == (0.85, 0.75)
    detail = medical["embedder_detail"]
    assert (detail["embedder"], detail["temperature"], detail["temperature_range"]) == ("E5", 1.2, [0.8, 2.5])
    assert (detail["sample_count"], detail["ece"]) == (0, None) and "trained" in detail
    assert "embedder_detail" not in general and general["calibration"]["status"] == "insufficient_data"
    assert general["drift_scores"] == {} and len(general["temperatures"]) == 13
    assert not any(general[name] for name in general if name.startswith("should_"))


@pytest.mark.parametrize(
    ("tool", "arguments", "reason", "field"),
    [
        (STATUS, {"embedder_id": 0}, "range", "embedder_id"),
        (STATUS, {"embedder_id": 14}, "range", "embedder_id"),
        (STATUS, {"domain": "Cooking"}, "enum", "domain"),
        (METRICS, {"timeframe": "1y"}, "enum", "timeframe"),
        (TRIGGER, {"level": 0}, "range", "level"),
        (TRIGGER, {"level": 5}, "range", "level"),
        (TRIGGER, {"level": 2.5}, "type", "level"),
        (TRIGGER, {}, "missing", "level"),
    ],
)
async def test_what_is_asked_wrongly_is_refused(
    asked: Agent, tool: str, arguments: dict[str, Any], reason: str, field: str
) -> None:
    answer = await asked.call(tool, **arguments)
    assert (answer["reason"], answer["field"]) == (reason, field)


async def test_a_recalibration_sent_twice_counts_once(judge: Agent) -> None:
    found = await judge.call("search_graph", query=ASKED)
    await judged(judge, found, "relevant")
    request_id = "0198c0de-0000-7000-8000-000000000001"
    first, again = [await judge.call(TRIGGER, request_id=request_id, level=3) for _ in range(2)]
    assert first["recalibration"] == again["recalibration"]
    assert (await judge.call(STATUS))["bandit"]["total_pulls"] == 20
