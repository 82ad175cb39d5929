"""get_calibration_metrics: how often what is said to be probable is right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.calibration_fields import METRICS
from mcp_ingress.toolsets.context_graph.get_threshold_status import BRIER_ALERT, ECE_ALERT, drift_scores
from processors.context_graph.read.calibration import read_judgements, read_learned
from processors.context_graph.rules.calibration import (
    DESCRIPTIONS,
    INSUFFICIENT,
    VIEWS,
    JudgedResult,
    Metrics,
    metrics_of,
    shown_metrics,
    view_metrics,
)
from processors.context_graph.rules.recalibration import Learned
from processors.context_graph.rules.thresholds import STRONG

TIMEFRAMES: Mapping[str, timedelta] = {
    "1h": timedelta(hours=1),
    "24h": timedelta(days=1),
    "7d": timedelta(days=7),
    "30d": timedelta(days=30),
}
MCE_ALERT = 0.20
STALE_AFTER = timedelta(days=1)
POOR = 0.15


async def get_calibration_metrics(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Compare what would be said now with what was judged in the timeframe."""
    is_fresh = await call.fresh()
    timeframe = arguments["timeframe"]
    now = call.clock.now().replace(tzinfo=None)
    learned, judged = await call.read(lambda cursor: _read(cursor, call.namespace, now - TIMEFRAMES[timeframe]))
    judgements = [each for _, each in judged]
    metrics = metrics_of(judgements, learned.calibrations)
    drifts = drift_scores(learned)
    return {
        "success": True,
        "timeframe": timeframe,
        "metrics": shown_metrics(metrics),
        "status": metrics.status,
        "status_description": DESCRIPTIONS[metrics.status],
        "should_recalibrate": metrics.status in ("Poor", "Critical"),
        "drift_scores": drifts,
        "poorly_calibrated_embedders": _poor_views(judgements, learned),
        "recommendations": _recommendations(metrics, drifts, judged[-1][0] if judged else None, now),
        **({} if is_fresh else {"stale": True}),
    }


def _read(
    cursor: duckdb.DuckDBPyConnection, namespace: str, since: datetime
) -> tuple[Learned, list[tuple[datetime, JudgedResult]]]:
    return read_learned(cursor, namespace), read_judgements(cursor, namespace, since)


def _poor_views(judgements: Sequence[JudgedResult], learned: Learned) -> list[str]:
    """The views whose alignment, read as a probability, is off by more than POOR."""
    temperatures = learned.calibrations.temperatures
    errors = {n: view_metrics(judgements, n, temperatures[n - 1]).ece for n in range(1, VIEWS + 1)}
    return [f"E{number}" for number, ece in errors.items() if ece is not None and ece >= POOR]


def _recommendations(metrics: Metrics, drifts: Mapping[str, float], last: datetime | None, now: datetime) -> list[str]:
    """What to call, and why."""
    if metrics.status == INSUFFICIENT:
        return ["Judge results of searches with update_synergy_matrix: ten are needed."]
    said = []
    if (metrics.ece or 0.0) > ECE_ALERT:
        said.append("trigger_recalibration level 2: probabilities are off by more than a tenth.")
    if (metrics.brier or 0.0) > BRIER_ALERT:
        said.append("trigger_recalibration level 3: single results are told badly.")
    if any(score > STRONG for score in drifts.values()):
        said.append("trigger_recalibration level 4: what thresholds cut has drifted by more than three deviations.")
    if (metrics.mce or 0.0) > MCE_ALERT:
        said.append("Look at the results of one probability: the worst bin is off by more than a fifth.")
    if last is not None and now - last > STALE_AFTER:
        said.append("Nothing was judged in the last 24 hours.")
    return said


_TEXTS = {"type": "array", "items": {"type": "string"}}

TOOL = Tool(
    name="get_calibration_metrics",
    toolset="context_graph",
    title="Calibration metrics",
    description="Get calibration quality metrics of the results that update_synergy_matrix judged: ECE, MCE, Brier "
    "score, drift scores per threshold, and status. ECE below 0.05 is excellent, below 0.10 good.",
    kind="read",
    handler=get_calibration_metrics,
    input_schema={
        "type": "object",
        "properties": {
            "timeframe": {
                "type": "string",
                "enum": list(TIMEFRAMES),
                "default": "24h",
                "description": "What was judged in it, at most the newest 500",
            }
        },
    },
    output_schema=writes.output_schema(
        {
            "timeframe": {"type": "string"},
            "metrics": METRICS,
            "status": {"type": "string"},
            "status_description": {"type": "string"},
            "should_recalibrate": {"type": "boolean"},
            "drift_scores": {"type": "object"},
            "poorly_calibrated_embedders": _TEXTS,
            "recommendations": _TEXTS,
        }
    ),
)
