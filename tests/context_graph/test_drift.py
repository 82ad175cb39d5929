"""Drift and its correction through the door: what is told, what is corrected, what searches then return."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from processors.context_graph.read.drift import DriftCache, DriftReader
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import CENTRE_MEMBERS, Purposes, central_ids, read_north_star
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.drift import scalar
from processors.context_graph.rules.drift_series import TIMEFRAMES
from processors.context_graph.rules.memories import memory_id_of
from processors.frame.stage import StageParts, StoreParts
from processors.frame.timer import Timer, TimerParts, timers
from streams.codec import encode
from streams.event_types.context_drift import DRIFT_CORRECTED, DRIFT_OBSERVED
from streams.event_types.context_goals import GOAL_BOOTSTRAPPED
from streams.event_types.context_graph import MEMORY_STORED
from streams.events import Event
from streams.topics import DERIVED, MEMORY
from tests.context_graph.test_ends import merging
from tests.talos.embedding_node import EmbeddingNode
from tests.talos.making import NOON
from tests.valence_kb.conftest import Agent
from thalweg.settings import Settings

CLIENTS = ("Ana", "Ben", "Cleo", "Dov", "Eli")
VERBS = ("pays", "disputes", "receives", "cancels", "reads", "files")
BIRDS = ("heron", "grebe", "plover", "tern", "avocet")
PLACES = ("the marsh", "the reeds", "a sandbank", "the north shore", "an islet", "the weir")
INVOICES = [f"{who} {verb} the invoice of the client for the quarter." for verb in VERBS for who in CLIENTS]
WATERS = [f"Yesterday a {bird} nested near {place} at low tide." for place in PLACES for bird in BIRDS]
HOUR = timedelta(hours=1)


async def keep(agent: Agent, texts: list[str]) -> list[str]:
    """Store these as a producer does; their ids."""
    node = agent.node
    events = [Event(text, "test", MEMORY_STORED, "default", node.clock.time, {"content": text}) for text in texts]
    await node.publish([encode(MEMORY.name, event) for event in events])
    return [memory_id_of(event) for event in events]


def bootstrap(node: EmbeddingNode, members: list[str]) -> None:
    """The goal that these memories have, as its tool tells it."""
    goal = {"goal_text": "Invoices", "medoid_id": members[0], "member_ids": members}
    data = {"confidence_threshold": 0.7, "goal": goal | {"confidence": 0.9, "coherence": 0.9}, "request_id": "goal"}
    apply(node, Event("goal", "test", GOAL_BOOTSTRAPPED, "default", NOON, data), MEMORY.name)


def apply(node: EmbeddingNode, event: Any, topic: str) -> None:
    node.process([node.store.record(encode(topic, event))])


async def drifted(node: EmbeddingNode, agent: Agent, count: int = 12) -> None:
    """A goal of invoices, and then so many memories of birds."""
    bootstrap(node, await keep(agent, INVOICES[:20]))
    await keep(agent, WATERS[:count])


@pytest.fixture(autouse=True)
def _few_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("processors.context_graph.read.corrections.PROBES", 12)


@pytest.fixture
def timer(node: EmbeddingNode) -> Timer:
    return timer_of(node, Settings())


def timer_of(node: EmbeddingNode, settings: Settings) -> Timer:
    parts = TimerParts(StageParts(node.embedder, StoreParts(node.reader, node.indexes, node.applied)), settings)
    return next(each for each in timers(parts) if each.name == "observe_drift")


async def look(node: EmbeddingNode, timer: Timer, now: datetime) -> list[Any]:
    """What is due, applied in the order of the log."""
    events = await node.reader.run(lambda cursor: list(timer.due(cursor, now)))
    for event in events:
        apply(node, event, MEMORY.name if event.type == DRIFT_CORRECTED else DERIVED.name)
    return events


async def test_without_a_goal_both_tools_say_what_finds_one(agent: Agent) -> None:
    await keep(agent, INVOICES[:3])
    for tool, code in (
        ("get_alignment_drift", "drift_detector_error"),
        ("trigger_drift_correction", "drift_corrector_error"),
    ):
        refused = await agent.call(tool)
        assert (refused["error_code"], refused["reason"]) == (code, "no_north_star")
        assert "auto_bootstrap_north_star" in refused["message"] and "auto_bootstrap_north_star" in refused["remedy"]
    codes = agent.door.inventory.toolset(agent.door.inventory.tools["get_alignment_drift"]).errors.rpc_codes
    assert [codes[code] for code in ("drift_detector_error", "drift_corrector_error")] == [-32111, -32112]


async def test_a_store_that_is_down_is_told_with_the_codes_of_drift(node: EmbeddingNode, agent: Agent) -> None:
    node.reader.is_down = True
    for tool, code in (
        ("get_alignment_drift", "drift_detector_error"),
        ("trigger_drift_correction", "drift_corrector_error"),
    ):
        refused = await agent.call(tool)
        assert (refused["error_code"], refused["reason"]) == (code, "storage")


async def test_more_of_the_same_matter_is_no_drift_and_another_matter_is_severe(
    node: EmbeddingNode, agent: Agent
) -> None:
    bootstrap(node, await keep(agent, INVOICES[:20]))
    await keep(agent, INVOICES[20:])
    same = await agent.call("get_alignment_drift")
    assert same["severity"] in ("none", "mild") and same["sufficient_data"] and same["timeframe"] == "24h"
    await keep(agent, WATERS[:20])
    other = await agent.call("get_alignment_drift")
    drift = other["overall_drift"]
    assert other["severity"] == "severe" and drift["has_drifted"]
    assert (
        drift["drift_score"] == pytest.approx(drift["baseline"] - drift["similarity"], abs=2e-6)
        and drift["samples"] == 20
    )
    assert [row["embedder"] for row in other["per_embedder_drift"]] == [f"E{number}" for number in range(1, 14)]
    moved = {row["embedder"]: row["deviations"] for row in other["per_embedder_drift"]}
    assert len(other["most_drifted_embedders"]) == 3 and not {"E2", "E3", "E4"} & set(other["most_drifted_embedders"])
    assert all(moved[view] > 2 for view in other["most_drifted_embedders"])
    assert (
        "trigger_drift_correction" in other["recommendation"] and other["recommendations"][0] == other["recommendation"]
    )


async def test_the_timeframe_decides_what_is_looked_at_and_the_history_has_every_bucket(
    node: EmbeddingNode, agent: Agent
) -> None:
    bootstrap(node, await keep(agent, INVOICES[:20]))
    node.clock.time += 3 * HOUR
    await keep(agent, WATERS[:12])
    node.clock.time += 5 * HOUR
    await keep(agent, INVOICES[20:])
    hour, day = [
        await agent.call("get_alignment_drift", timeframe=each, include_history=True) for each in ("1h", "24h")
    ]
    assert (hour["memories"], day["memories"]) == (10, 42) and hour["severity"] != day["severity"] != "none"
    assert [len(each["history"]) for each in (hour, day)] == [12, 24]
    counts = [bucket["samples"] for bucket in day["history"]]
    assert sum(counts) == 42 and counts.count(0) == 21 and counts[-1] == 10
    empty = [bucket for bucket in day["history"] if not bucket["samples"]]
    assert all(bucket["alignment"] is None for bucket in empty) and day["corrections"] == []
    assert "history" not in await agent.call("get_alignment_drift")
    node.services.parts.clear()
    again = await agent.call("get_alignment_drift", timeframe="24h", include_history=True)
    assert again == day, "as after a restart"


async def test_too_few_memories_are_told_and_nothing_is_corrected(node: EmbeddingNode, agent: Agent) -> None:
    bootstrap(node, await keep(agent, INVOICES[:20]))
    node.clock.time += 30 * HOUR
    refused = await agent.call("trigger_drift_correction")
    assert (refused["error_code"], refused["reason"]) == ("drift_corrector_error", "insufficient_data")
    await keep(agent, WATERS[:3])
    answer = await agent.call("get_alignment_drift")
    assert (answer["severity"], answer["sufficient_data"], answer["memories"]) == ("none", False, 3)
    corrected = await agent.call("trigger_drift_correction")
    assert corrected["correction_result"]["strategy_applied"] == "none"


def test_every_member_of_a_goal_is_in_its_centre_and_of_very_many_always_the_same() -> None:
    ids = [f"memory {number}" for number in range(CENTRE_MEMBERS + 100)]
    assert central_ids("default", ids[:200]) == ids[:200]
    chosen = central_ids("default", ids)
    assert len(chosen) == CENTRE_MEMBERS and set(central_ids("default", ids[::-1])) == set(chosen)


async def test_a_goal_of_two_memories_tells_no_drift(node: EmbeddingNode, agent: Agent) -> None:
    bootstrap(node, await keep(agent, INVOICES[:2]))
    await keep(agent, WATERS[:20])
    answer = await agent.call("get_alignment_drift")
    assert (answer["severity"], answer["sufficient_data"]) == ("none", False)
    assert "auto_bootstrap_north_star" in answer["recommendation"]


async def test_without_drift_nothing_is_published_and_nothing_changes(node: EmbeddingNode, agent: Agent) -> None:
    bootstrap(node, await keep(agent, INVOICES))
    before = len(node.published)
    answer = await agent.call("trigger_drift_correction")
    result = answer["correction_result"]
    assert result["strategy_applied"] == "none" and result["alignment_before"] == result["alignment_after"] != 0
    assert answer["before_state"] == answer["after_state"] and "freshness" not in answer
    assert len(node.published) == before
    forced = await agent.call("trigger_drift_correction", force=True)
    assert forced["correction_result"]["strategy_applied"] == "goal_reinforcement" and forced["forced"]
    assert forced["before_state"]["severity"] == "none"


async def test_a_correction_puts_what_belongs_to_the_goal_first_and_changes_not_which_ten_are_found(
    node: EmbeddingNode, agent: Agent
) -> None:
    await drifted(node, agent, 20)
    query = "What was near the client yesterday?"
    plain = await agent.call("search_graph", query=query, topK=30)
    answer = await agent.call("trigger_drift_correction")
    result = answer["correction_result"]
    assert result["strategy_applied"] == "emergency_intervention" and answer["version"] == 1
    assert result["improvement"] == pytest.approx(result["alignment_after"] - result["alignment_before"], abs=2e-6)
    assert result["improvement"] > 0 and sum(answer["after_state"]["weights"]) == pytest.approx(1)
    is_reached = result["alignment_after"] >= result["target_alignment"] - 2e-6
    assert result["success"] == (is_reached or result["improvement"] >= 0.01)
    after = await agent.call("search_graph", query=query, topK=30)
    ids = [[row["fingerprintId"] for row in each["results"]] for each in (plain, after)]
    assert ids[0] != ids[1] and set(ids[0][:10]) == set(ids[1][:10]) and ids[0][10:] == ids[1][10:]
    ranked = [row["score"] + row["correction"] for row in after["results"][:10]]
    assert ranked == sorted(ranked, reverse=True) and not any("correction" in row for row in after["results"][10:])
    short = await agent.call("search_graph", query=query, topK=3)
    assert [row["fingerprintId"] for row in short["results"]] == ids[1][:3]
    told = await agent.call("get_alignment_drift", include_history=True)
    assert told["severity"] == "severe", "what is stored has not changed"
    [correction] = told["corrections"]
    assert correction["strategy"] == "emergency_intervention" and not correction["automatic"]
    assert correction["alignment_after"] == result["alignment_after"]


async def test_a_request_that_is_sent_twice_is_corrected_once(node: EmbeddingNode, agent: Agent) -> None:
    await drifted(node, agent)
    first = await agent.call("trigger_drift_correction", request_id="once")
    again = await agent.call("trigger_drift_correction", request_id="once")
    assert (first["version"], again["version"]) == (1, 1)
    assert node.store.sql("SELECT version FROM context_corrections") == [(1,)]


async def test_a_target_is_reached_by_the_smallest_dose_or_refused_with_what_can_be_reached(
    node: EmbeddingNode, agent: Agent
) -> None:
    await drifted(node, agent)
    refused = await agent.call("trigger_drift_correction", target_alignment=1)
    assert (refused["reason"], refused["field"]) == ("range", "target_alignment") and str(
        refused["reachable"]
    ) in refused["message"]
    for bad in (float("nan"), 1.01, -1.01, "high"):
        assert (await agent.call("trigger_drift_correction", target_alignment=bad))["field"] == "target_alignment"
    before = (await agent.call("trigger_drift_correction"))["correction_result"]["alignment_before"]
    target = (before + refused["reachable"]) / 2
    result = (await agent.call("trigger_drift_correction", target_alignment=target))["correction_result"]
    assert result["success"] and target <= result["alignment_after"] <= refused["reachable"] + 1e-6
    lifted = (await agent.call("trigger_drift_correction", target_alignment=-1))["correction_result"]
    assert lifted["factor"] == 0 and lifted["alignment_after"] == pytest.approx(before, abs=1e-6)
    assert all("correction" not in row for row in (await agent.call("search_graph", query="invoice"))["results"])


async def test_the_timer_observes_an_hour_once_enough_is_new_and_corrects_a_severe_drift(
    node: EmbeddingNode, agent: Agent, timer: Timer
) -> None:
    bootstrap(node, await keep(agent, INVOICES[:20]))
    assert await look(node, timer, node.clock.time) == [], "the hour is not over"
    node.clock.time += HOUR
    [first] = await look(node, timer, node.clock.time)
    assert first.type == DRIFT_OBSERVED and first.time == NOON + HOUR and first.data["memories"] == 20
    await keep(agent, WATERS[:9])
    node.clock.time += HOUR
    assert await look(node, timer, node.clock.time) == [], "nine are new"
    await keep(agent, WATERS[9:20])
    node.clock.time += HOUR
    corrected, observed = await look(node, timer, node.clock.time + timedelta(minutes=50))
    assert (corrected.type, observed.type) == (DRIFT_CORRECTED, DRIFT_OBSERVED)
    assert corrected.data["automatic"] and observed.data["severity"] == "severe" and observed.time == node.clock.time
    assert await look(node, timer, node.clock.time + timedelta(minutes=55)) == []
    await keep(agent, WATERS[20:])
    node.clock.time += HOUR
    assert [event.type for event in await look(node, timer, node.clock.time)] == [DRIFT_OBSERVED], "it is corrected"
    told = await agent.call("get_alignment_drift", include_history=True)
    assert told["corrections"][0]["automatic"] and "severe" in [each["observed_severity"] for each in told["history"]]
    assert "correction" in (await agent.call("search_graph", query="invoice"))["results"][0]


async def test_an_observation_of_the_future_keeps_no_hour_from_being_observed(
    node: EmbeddingNode, agent: Agent, timer: Timer
) -> None:
    bootstrap(node, await keep(agent, INVOICES[:20]))
    now = node.clock.time + HOUR
    for at in (now + 480 * HOUR, now):
        assert [(each.type, each.time) for each in await look(node, timer, at)] == [(DRIFT_OBSERVED, at)]
    assert await look(node, timer, now) == []


async def test_two_nodes_tell_the_same_of_an_hour(node: EmbeddingNode, agent: Agent, timer: Timer) -> None:
    await drifted(node, agent)
    now, other = node.clock.time + HOUR, timer_of(node, Settings())
    one, two = [await node.reader.run(lambda cursor, each=each: list(each.due(cursor, now))) for each in (timer, other)]
    assert one == two and len(one) == 2
    for event in (*one, *two):
        apply(node, event, MEMORY.name if event.type == DRIFT_CORRECTED else DERIVED.name)
    assert node.store.sql("SELECT count(*) FROM context_drift_observations") == [(1,)]
    assert node.store.sql("SELECT version FROM context_corrections") == [(1,)]


async def test_a_correction_is_lifted_once_nothing_drifts_any_more_but_not_one_that_was_forced(
    node: EmbeddingNode, agent: Agent, timer: Timer
) -> None:
    await drifted(node, agent)
    await agent.call("trigger_drift_correction")
    node.clock.time += HOUR
    await look(node, timer, node.clock.time)
    await keep(agent, [*INVOICES[20:], *(f"{text} " for text in INVOICES[:10])])
    node.clock.time += HOUR
    ended, observed = await look(node, timer, node.clock.time)
    assert observed.data["severity"] == "none" and ended.data["strategy"] == "none" and ended.data["automatic"]
    assert "correction" not in (await agent.call("search_graph", query="invoice"))["results"][0]
    await agent.call("trigger_drift_correction", force=True)
    await keep(agent, [f"{text} " for text in INVOICES[10:]])
    node.clock.time += HOUR
    assert [event.type for event in await look(node, timer, node.clock.time)] == [DRIFT_OBSERVED]


async def test_a_clock_that_goes_back_hides_nothing_and_observes_nothing_twice(
    node: EmbeddingNode, agent: Agent, timer: Timer
) -> None:
    await drifted(node, agent)
    node.clock.time += HOUR
    await look(node, timer, node.clock.time)
    node.clock.time -= 5 * HOUR
    answer = await agent.call("get_alignment_drift", timeframe="1h", include_history=True)
    assert answer["severity"] == "severe" and answer["history"][-1]["samples"] == 32
    await keep(agent, WATERS[12:])
    assert await look(node, timer, node.clock.time) == []


async def test_members_that_were_merged_still_say_what_the_goal_is(node: EmbeddingNode, agent: Agent) -> None:
    ids = await keep(agent, INVOICES[:20])
    bootstrap(node, ids)
    await keep(agent, WATERS[:12])
    before = await agent.call("get_alignment_drift")
    apply(node, merging(*ids[:2]), MEMORY.name)
    after = await agent.call("get_alignment_drift")
    assert after["overall_drift"] == before["overall_drift"] and after["memories"] == before["memories"]


async def test_a_baseline_is_not_fitted_on_its_own_memories(node: EmbeddingNode, agent: Agent) -> None:
    ids = await keep(agent, INVOICES[:20])
    bootstrap(node, ids)

    def read(cursor: Any) -> tuple[float, float]:
        goal = read_north_star(cursor, "default")
        assert goal is not None
        reader = FingerprintReader(cursor, node.indexes, node.embedder, FingerprintCache(), "default")
        drift = DriftReader(reader, Purposes(), DriftCache(), goal)
        found = drift.observe(TIMEFRAMES["24h"], node.clock.time)
        assert found is not None
        return found.baseline.alignment, float(scalar(np.array(list(drift.purpose_vectors(ids).values()))).mean())

    held_out, fitted = await node.reader.run(read)
    assert held_out < fitted - 0.005


async def test_a_task_that_came_in_one_stretch_of_time_is_compared_with_the_other_tasks(node: EmbeddingNode) -> None:
    matter, task = INVOICES[:16], WATERS[:4]
    mixed = [text for place in range(4) for text in (*matter[4 * place : 4 * place + 4], task[place])]

    async def alignment(namespace: str, texts: list[str]) -> float:
        about = (MEMORY_STORED, namespace, node.clock.time)
        events = [Event(f"{namespace} {text}", "test", *about, {"content": text}) for text in texts]
        await node.publish([encode(MEMORY.name, event) for event in events])
        ids = [memory_id_of(event) for event in events]
        told = {"goal_text": "Invoices", "medoid_id": ids[0], "member_ids": ids, "confidence": 0.9, "coherence": 0.9}
        data = {"confidence_threshold": 0.7, "goal": told, "request_id": namespace}
        apply(node, Event(namespace, "test", GOAL_BOOTSTRAPPED, namespace, NOON, data), MEMORY.name)

        def read(cursor: Any) -> float:
            goal = read_north_star(cursor, namespace)
            assert goal is not None
            reader = FingerprintReader(cursor, node.indexes, node.embedder, FingerprintCache(), namespace)
            found = DriftReader(reader, Purposes(), DriftCache(), goal).observe(TIMEFRAMES["24h"], node.clock.time)
            assert found is not None
            return found.baseline.alignment

        return await node.reader.run(read)

    assert await alignment("in-a-row", [*matter, *task]) < await alignment("mixed", mixed) - 0.005


async def test_twelve_memories_of_another_matter_are_looked_at_by_themselves(node: EmbeddingNode, agent: Agent) -> None:
    await drifted(node, agent, 12)
    assert (await agent.call("get_alignment_drift"))["overall_drift"]["samples"] == 12
