"""get_autonomous_status: health, the six services and what to do next, from what the store holds."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from processors.context_graph.read import services as service_reader
from processors.context_graph.rules.goals import Goal
from processors.context_graph.rules.services import TOOLS, Runs, ServiceState, health_of, recommendations, status_of
from tests.context_graph.test_ends import merging, publish, stored
from tests.talos.embedding_node import EmbeddingNode
from tests.valence_kb.conftest import Agent

TOOL, BOOTSTRAP = "get_autonomous_status", "auto_bootstrap_north_star"
AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
GOAL = Goal("g", "NorthStar", "Tides.", "m", ("m", "n", "o"), None, 0.9, 1.0, ("E1",), AT)
FAILED = Runs(3, 2, AT, "error", "storage", 4.0)


def state(**more: Any) -> ServiceState:
    plain: dict[str, Any] = {"goal": GOAL, "memories": 5, "themes": 1, "severity": None, "runs": {}, "worked_at": {}}
    return ServiceState(**plain | more)


@pytest.mark.parametrize(
    ("severity", "broken", "expected"),
    [
        (None, 0, (1.0, "healthy")),
        ("none", 0, (1.0, "healthy")),
        ("mild", 0, (0.85, "healthy")),
        ("mild", 1, (0.75, "degraded")),
        ("moderate", 0, (0.6, "degraded")),
        ("moderate", 1, (0.5, "degraded")),
        ("moderate", 2, (0.4, "critical")),
        ("severe", 0, (0.3, "critical")),
        ("severe", 6, (0.05, "critical")),
    ],
)
def test_health_follows_drift_and_services_in_error(
    severity: str | None, broken: int, expected: tuple[float, str]
) -> None:
    runs = dict.fromkeys(list(TOOLS)[:broken], FAILED)
    assert health_of(state(severity=severity, runs=runs)) == expected
    assert health_of(state(severity=severity, runs=runs, goal=None)) == (0.0, "not_configured")


def test_a_service_is_what_its_last_call_left() -> None:
    assert status_of("drift_detector", state()) == "idle"
    assert status_of("drift_detector", state(goal=None)) == "not_initialized"
    assert status_of("bootstrap_service", state(goal=None)) == "ready"
    assert status_of("drift_detector", state(worked_at={"drift_detector": AT})) == "ready"
    assert status_of("drift_detector", state(runs={"drift_detector": FAILED})) == "error"
    refused = dataclasses.replace(FAILED, last_outcome="refused")
    assert status_of("drift_detector", state(runs={"drift_detector": refused})) == "ready", "a refusal is an answer"
    assert status_of("consolidation_service", state(dreams=1)) == "running"


def test_recommendations_come_by_urgency_and_name_tools() -> None:
    found = recommendations(state(severity="severe", themes=0, memories=500))
    assert [(one["priority"], one["action"]) for one in found] == [
        ("high", "trigger_drift_correction"),
        ("medium", "discover_sub_goals"),
        ("low", "trigger_consolidation"),
        ("low", "get_pruning_candidates"),
    ]
    assert recommendations(state(goal=None, memories=0))[0]["action"] == BOOTSTRAP
    broken = recommendations(state(goal=None, runs={"subgoal_discovery": FAILED}))
    assert [one["action"] for one in broken] == [BOOTSTRAP, "discover_sub_goals"] and "storage" in broken[1][
        "description"
    ]
    provisional = dataclasses.replace(GOAL, member_ids=("m",))
    assert recommendations(state(goal=provisional))[0]["action"] == BOOTSTRAP
    assert recommendations(state(worked_at={"drift_detector": AT})) == []


@pytest.fixture
async def recorded(agent: Agent) -> AsyncIterator[Agent]:
    """An agent whose calls leave their records."""
    agent.door.start()
    yield agent
    await agent.door.stop()


async def test_a_fresh_store_is_not_configured_and_says_where_to_begin(agent: Agent) -> None:
    fresh = await agent.call(TOOL)
    assert fresh["overall_health"] == {"score": 0.0, "status": "not_configured", "north_star_configured": False}
    assert list(fresh["services"]) == [
        *("bootstrap_service", "drift_detector", "drift_corrector"),
        *("pruning_service", "consolidation_service", "subgoal_discovery"),
    ]
    assert {service["status"] for service in fresh["services"].values()} == {"ready", "not_initialized"}
    assert fresh["recommendations"][0] | {"description": ""} == {
        "priority": "high",
        "action": BOOTSTRAP,
        "description": "",
    }
    assert fresh["north_star"] == {"configured": False}
    assert "history" not in fresh and "metrics" not in fresh


async def test_what_was_done_is_told_and_counted(recorded: Agent, node: EmbeddingNode) -> None:
    agent = recorded
    await agent.call(BOOTSTRAP)  # refused: nothing is stored
    ids = await stored(agent, *(f"The tide turns at {hour}." for hour in range(5)))
    goal = (await agent.call(BOOTSTRAP, confidence_threshold=0))["bootstrap_result"]
    await agent.call("discover_sub_goals", min_confidence=0)
    answer = await agent.call(TOOL, include_metrics=True, include_history=True)
    assert answer["overall_health"] == {"score": 1.0, "status": "healthy", "north_star_configured": True}
    assert answer["north_star"] == {
        "configured": True,
        "goal_id": goal["goal_id"],
        "description": goal["goal_text"],
    }
    bootstrap = answer["services"]["bootstrap_service"]
    assert bootstrap["status"] == "ready" and bootstrap["last_run"] and bootstrap["last_error"] == "bootstrap_error"
    assert answer["services"]["consolidation_service"] == {"status": "idle", "last_run": None, "last_error": None}
    counted = answer["metrics"]["bootstrap_service"]
    assert (counted["runs"], counted["successes"], counted["failures"]) == (2, 1, 1)
    assert counted["last_duration_ms"] is not None and answer["metrics"]["drift_detector"]["last_duration_ms"] is None
    told = [(one["service"], one["operation"], one["outcome"]) for one in answer["history"]]
    assert told[-1] == ("bootstrap_service", BOOTSTRAP, "refused") and len(told) == 3
    assert [one["ts"] for one in answer["history"]] == sorted((one["ts"] for one in answer["history"]), reverse=True)
    short = await agent.call(TOOL, include_history=True, history_count=1)
    assert short["history"] == answer["history"][:1] and "metrics" not in short
    await publish(node, merging(ids[0], ids[1]))
    merged = (await agent.call(TOOL))["services"]["consolidation_service"]
    assert merged["status"] == "ready" and merged["last_run"], "by a dream or by hand, merged is merged"


async def test_a_part_that_cannot_be_read_fails_the_status_by_its_own_code(
    recorded: Agent, node: EmbeddingNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = recorded
    codes = agent.door.inventory.toolsets["context_graph"].errors
    monkeypatch.setattr(service_reader, "_WORKED", "SELECT service, at FROM no_such_part WHERE namespace = $1")
    failed = await agent.call(TOOL)
    assert (failed["error_code"], failed["reason"]) == ("status_error", "storage")
    assert "services" in failed["message"] and codes.rpc_code("status_error", is_refusal=False) == -32116
    monkeypatch.undo()
    node.reader.is_down = True
    assert (await agent.call(TOOL))["error_code"] == "status_error"
    assert (await agent.call(BOOTSTRAP))["error_code"] == "bootstrap_error"
    assert (await agent.call("discover_sub_goals"))["error_code"] == "subgoal_error"
    node.reader.is_down = False
    answer = await agent.call(TOOL)
    assert answer["services"]["bootstrap_service"]["status"] == "error"
    assert {one["action"] for one in answer["recommendations"]} == {BOOTSTRAP, "discover_sub_goals"}


async def test_bad_arguments_are_refused_by_name(asked: Agent) -> None:
    for arguments, field in (({"history_count": 0}, "history_count"), ({"history_count": 101}, "history_count")):
        assert (await asked.call(TOOL, **arguments))["field"] == field
