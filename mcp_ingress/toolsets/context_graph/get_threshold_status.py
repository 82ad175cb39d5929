"""get_threshold_status: the thresholds of a domain, and what judged results have taught."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.calibration_fields import DOMAIN, METRICS
from mcp_ingress.toolsets.context_graph.embedders import views_of_node
from processors.context_graph.read.calibration import read_judgements, read_learned, read_thresholds
from processors.context_graph.rules.calibration import (
    RANGE,
    RANGES,
    VIEWS,
    JudgedResult,
    Metrics,
    metrics_of,
    shown_metrics,
    view_metrics,
)
from processors.context_graph.rules.recalibration import Learned
from processors.context_graph.rules.thresholds import (
    THRESHOLDS,
    arms_of,
    proposed_level,
    ucb,
    values_of,
    violation_budget,
)

ECE_ALERT, BRIER_ALERT = 0.10, 0.15
DIGITS = 6


async def get_threshold_status(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Read what was learned, and say where a level of recalibration would help."""
    is_fresh = await call.fresh()
    domain, embedder = arguments["domain"], arguments.get("embedder_id")
    learned, changed, judgements = await call.read(lambda cursor: _read(cursor, call.namespace, domain))
    metrics = metrics_of(judgements, learned.calibrations)
    detail = {} if embedder is None else {"embedder_detail": _view(call, embedder, learned, judgements)}
    return {
        "success": True,
        "domain": domain,
        "thresholds": _thresholds(domain, learned, changed),
        "calibration": {**shown_metrics(metrics), "status": metrics.status},
        "temperatures": {f"E{n}": learned.calibrations.temperatures[n - 1] for n in range(1, VIEWS + 1)},
        "relevance": asdict(learned.calibrations.relevance),
        "similarity": asdict(learned.calibrations.similarity),
        "drift_scores": drift_scores(learned),
        "bandit": _bandit(domain, learned),
        **_advice(metrics, learned),
        **detail,
        **({} if is_fresh else {"stale": True}),
    }


def _read(
    cursor: duckdb.DuckDBPyConnection, namespace: str, domain: str
) -> tuple[Learned, dict[str, tuple[float, int]], list[JudgedResult]]:
    judgements = [judged for _, judged in read_judgements(cursor, namespace)]
    return read_learned(cursor, namespace), read_thresholds(cursor, namespace, domain), judgements


def _thresholds(
    domain: str, learned: Learned, changed: Mapping[str, tuple[float, int]]
) -> dict[str, dict[str, float | int | None]]:
    """By name: value, base, limits, drift of what it cuts, and the level that set it."""
    values, drifts = values_of(domain, {name: value for name, (value, _) in changed.items()}), drift_scores(learned)
    return {
        name: {
            "value": values[name],
            "base": each.base(domain),
            "min": each.least,
            "max": each.most,
            "drift_score": drifts.get(name),
            "level": changed[name][1] if name in changed else None,
        }
        for name, each in THRESHOLDS.items()
    }


def drift_scores(learned: Learned) -> dict[str, float]:
    """By threshold the drift of what it cuts, in standard deviations, where it was observed enough."""
    return {name: round(each.drift, DIGITS) for name, each in learned.observed.items() if each.drift is not None}


def _bandit(domain: str, learned: Learned) -> dict[str, Any]:
    pulls = sum(learned.successes) + sum(learned.failures)
    arms = []
    for value, right, wrong in zip(arms_of(domain), learned.successes, learned.failures, strict=True):
        own = right + wrong
        mean = (right + 1) / (own + 2)
        bound = ucb(right / own if own else 0.0, pulls, own)
        counts: dict[str, float | None] = {"value": value, "successes": right, "failures": wrong}
        arms.append(counts | {"mean": round(mean, DIGITS), "ucb": None if bound is None else round(bound, DIGITS)})
    return {"arms": arms, "total_pulls": pulls, "violation_budget": round(violation_budget(pulls), DIGITS)}


def _advice(metrics: Metrics, learned: Learned) -> dict[str, bool]:
    proposed = [proposed_level(score) for score in drift_scores(learned).values()]
    return {
        "should_recalibrate_level2": 2 in proposed or (metrics.ece or 0.0) > ECE_ALERT,
        "should_explore_level3": 3 in proposed or (metrics.brier or 0.0) > BRIER_ALERT,
        "should_optimize_level4": 3 in proposed,
    }


def _view(call: Call, embedder: int, learned: Learned, judgements: Sequence[JudgedResult]) -> dict[str, Any]:
    view = views_of_node(call.services)[embedder - 1]
    temperature = learned.calibrations.temperatures[embedder - 1]
    metrics = view_metrics(judgements, embedder, temperature)
    return {
        "embedder": view.label,
        "name": view.name,
        "temperature": temperature,
        "temperature_range": list(RANGES.get(embedder, RANGE)),
        **{name: value for name, value in shown_metrics(metrics).items() if name in ("sample_count", "ece", "brier")},
        "provider": view.provider,
        "model": view.model,
        "trained": view.trained,
    }


_OBJECT = {"type": "object"}
_FLAG = {"type": "boolean"}

TOOL = Tool(
    name="get_threshold_status",
    toolset="context_graph",
    title="Threshold status",
    description="Get current ATC threshold status, calibration state and adaptation metrics. `relevance` is how the "
    "`relevance` of searches is corrected here; thresholds and temperatures are shown only: no search depends on "
    "them.",
    kind="read",
    handler=get_threshold_status,
    input_schema={
        "type": "object",
        "properties": {
            "domain": DOMAIN,
            "embedder_id": {"type": "integer", "minimum": 1, "maximum": VIEWS, "description": "Detail of this view"},
        },
    },
    output_schema=writes.output_schema(
        {
            "domain": {"type": "string"},
            "thresholds": {**_OBJECT, "description": "By name: value, base, min, max, drift_score, level"},
            "calibration": METRICS,
            "temperatures": {**_OBJECT, "description": "E1 to E13"},
            "relevance": {**_OBJECT, "description": "temperature and offset"},
            "similarity": {**_OBJECT, "description": "Of searches that say no relevance"},
            "drift_scores": _OBJECT,
            "bandit": _OBJECT,
            "should_recalibrate_level2": _FLAG,
            "should_explore_level3": _FLAG,
            "should_optimize_level4": _FLAG,
            "embedder_detail": _OBJECT,
        }
    ),
)
