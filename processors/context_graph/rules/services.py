"""The six services that look after a namespace's purpose: how each is, and what to do next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from processors.context_graph.rules.goals import LEAST_MEMBERS, Goal

TOOLS: Mapping[str, str] = {
    "bootstrap_service": "auto_bootstrap_north_star",
    "drift_detector": "get_alignment_drift",
    "drift_corrector": "trigger_drift_correction",
    "pruning_service": "get_pruning_candidates",
    "consolidation_service": "trigger_consolidation",
    "subgoal_discovery": "discover_sub_goals",
}
"""The tool of each service."""
STATUSES = ("ready", "running", "idle", "error", "not_initialized")
HEALTH = ("healthy", "degraded", "critical", "not_configured")
PRIORITIES = ("high", "medium", "low")
SEVERITY_SCORES: Mapping[str, float] = {"none": 1.0, "mild": 0.85, "moderate": 0.6, "severe": 0.3}
_ERROR_COST, _LEAST_SCORE = 0.1, 0.05
_HEALTHY, _DEGRADED = 0.8, 0.5
_TOLERANCE = 1e-9
TIDY_FROM = 100
"""From this many memories on hygiene is advised."""
DRIFT_FROM = 10
"""Fewer memories tell no drift."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The calls of a service's tool. `last_outcome`: `ok`, `refused`, `error`, `timeout` or `rate_limited`."""

    runs: int = 0
    successes: int = 0
    last_at: datetime | None = None
    last_outcome: str | None = None
    last_error: str | None = None
    last_duration_ms: float | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the last call failed inside: a refusal is an answer."""
        return self.last_outcome in ("error", "timeout")


@dataclass(frozen=True, slots=True)
class ServiceState:
    """What the store tells of the services. `worked_at`: when a service last did something by itself or by a call."""

    goal: Goal | None
    memories: int
    themes: int
    severity: str | None
    """Of the drift that was observed last of this goal"""
    runs: Mapping[str, Runs]
    worked_at: Mapping[str, datetime]
    dreams: int = 0
    """Running now"""


def status_of(service: str, state: ServiceState) -> str:
    """One of STATUSES."""
    runs = state.runs.get(service, Runs())
    has_run = runs.runs > 0 or service in state.worked_at
    if runs.is_broken:
        return "error"
    if service == "consolidation_service" and state.dreams:
        return "running"
    if service == "bootstrap_service":
        return "ready"
    if not has_run:
        return "not_initialized" if state.goal is None else "idle"
    return "ready"


def health_of(state: ServiceState) -> tuple[float, str]:
    """The score from 0 to 1, and one of HEALTH."""
    if state.goal is None:
        return 0.0, "not_configured"
    broken = sum(status_of(service, state) == "error" for service in TOOLS)
    score = max(_LEAST_SCORE, SEVERITY_SCORES[state.severity or "none"] - _ERROR_COST * broken)
    score = round(score, 6)
    if score >= _HEALTHY - _TOLERANCE:
        return score, "healthy"
    return score, "degraded" if score >= _DEGRADED - _TOLERANCE else "critical"


def recommendations(state: ServiceState) -> list[dict[str, str]]:
    """What to do, the most urgent first: priority, action (a tool) and description."""
    found = [*_of_purpose(state), *_of_errors(state), *_of_drift(state), *_of_hygiene(state)]
    return sorted(found, key=lambda one: PRIORITIES.index(one["priority"]))


def _of_purpose(state: ServiceState) -> Sequence[dict[str, str]]:
    goal = state.goal
    if goal is None:
        first = "Store memories with `store_memory`, then find" if not state.memories else "Find"
        return [_advice("high", "bootstrap_service", f"{first} what the memories are about: no purpose is known.")]
    found = []
    if goal.is_provisional and state.memories >= LEAST_MEMBERS:
        why = f"The goal stands on fewer than {LEAST_MEMBERS} memories, and there are {state.memories} now."
        found.append(_advice("medium", "bootstrap_service", why))
    if not state.themes and state.memories >= LEAST_MEMBERS:
        found.append(_advice("medium", "subgoal_discovery", "No theme was found under the goal yet."))
    return found


def _of_errors(state: ServiceState) -> Sequence[dict[str, str]]:
    return [
        _advice("high", service, f"Its last call failed ({state.runs[service].last_error}): call it again.")
        for service in TOOLS
        if status_of(service, state) == "error"
    ]


def _of_drift(state: ServiceState) -> Sequence[dict[str, str]]:
    if state.goal is None:
        return []
    if state.severity == "severe":
        return [_advice("high", "drift_corrector", "What was stored of late has left the goal.")]
    if state.severity == "moderate":
        return [_advice("medium", "drift_corrector", "What was stored of late is moving away from the goal.")]
    if state.severity == "mild":
        return [_advice("low", "drift_detector", "What was stored of late is a little off the goal: look which views.")]
    if "drift_detector" not in state.worked_at and state.memories >= DRIFT_FROM:
        return [_advice("low", "drift_detector", "Nobody has looked yet whether work has left the goal.")]
    return []


def _of_hygiene(state: ServiceState) -> Sequence[dict[str, str]]:
    if state.goal is None or state.memories < TIDY_FROM:
        return []
    why = {
        "consolidation_service": f"{state.memories} memories were never looked through for those that say the same.",
        "pruning_service": f"{state.memories} memories were never looked through for those that nobody needs.",
    }
    return [_advice("low", service, text) for service, text in why.items() if service not in state.worked_at]


def _advice(priority: str, service: str, description: str) -> dict[str, str]:
    return {"priority": priority, "action": TOOLS[service], "description": description}
