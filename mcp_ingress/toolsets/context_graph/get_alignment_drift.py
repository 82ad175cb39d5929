"""get_alignment_drift: how far the last memories have moved from those in which the goal was found."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.context_graph.drift_state import (
    DETECTOR,
    advice,
    no_numbers,
    observe,
    rounded,
)
from processors.context_graph.read.drift import Observation, observed
from processors.context_graph.rules.drift import SEVERITIES
from processors.context_graph.rules.drift_series import TIMEFRAMES, buckets_until_severe, epoch_us
from processors.context_graph.rules.views.catalogue import VIEWS
from streams.clock import format_time

_LEVELS = ((0.85, "None"), (0.70, "Low"), (0.55, "Medium"), (0.40, "High"))
_LOWEST = "Critical"


async def get_alignment_drift(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, compare, and say it."""
    is_fresh = await call.fresh(vectors=True)
    answer = await call.read(functools.partial(_answer, call, arguments["timeframe"], arguments["include_history"]))
    return {"success": True, **answer, **({} if is_fresh else {"stale": True})}


def _answer(call: Call, timeframe: str, include_history: bool, cursor: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    found = observe(call, cursor, DETECTOR, timeframe)
    if found is None:
        return _unknown(timeframe)
    shown = _shown(found)
    if include_history:
        shown |= _history(found, *observed(cursor, call.namespace, found.timeframe.start(found.at)))
    return shown


def _shown(found: Observation) -> dict[str, Any]:
    drift, course, severity, sentence = found.drift, found.course, found.severity, advice(found)
    return {
        "severity": severity,
        "trend": course.trend,
        "recommendation": sentence,
        "timeframe": found.timeframe.name,
        "goal_id": found.goal.goal_id,
        "overall_drift": {
            "level": _level(drift.alignment, drift.baseline),
            "similarity": rounded(drift.alignment),
            "drift_score": rounded(drift.drift_score),
            "baseline": rounded(drift.baseline),
            "rotation": rounded(drift.rotation),
            "distance": rounded(drift.distance),
            "has_drifted": severity != "none",
            "samples": drift.samples,
        },
        "per_embedder_drift": [
            {
                "embedder": view.label,
                "alignment": _known(drift.views[place]),
                "drift": _known(drift.falls[place]),
                "deviations": _known(drift.deviations[place]),
            }
            for place, view in enumerate(VIEWS)
        ],
        "most_drifted_embedders": drift.most_drifted,
        "recommendations": _recommendations(found, severity, sentence),
        "trend_detail": {
            "direction": course.trend,
            "velocity": rounded(course.slope),
            "samples": course.samples,
            "projected_critical_in": _projected(found),
        },
        "sufficient_data": found.is_sufficient,
        "memories": found.memories,
    }


def _known(value: float) -> float | None:
    return None if math.isnan(value) else rounded(value)


def _projected(found: Observation) -> float | None:
    if found.course.trend != "worsening":
        return None
    return rounded(buckets_until_severe(found.drift.alignment, found.baseline, found.course.slope))


def _level(current: float, baseline: float) -> str:
    """The share of the baseline that is left, in a word."""
    share = current / baseline if baseline > 0 else 1.0
    return next((level for least, level in _LEVELS if share >= least), _LOWEST)


def _recommendations(found: Observation, severity: str, sentence: str) -> list[str]:
    also = []
    if severity in ("moderate", "severe"):
        also.append("Call `discover_sub_goals`: what is new may be a goal of its own.")
    if found.course.trend == "worsening" and severity in ("none", "mild"):
        also.append("The alignment falls from bucket to bucket: ask again after the next memories.")
    return [sentence, *also]


def _history(
    found: Observation, observations: Sequence[Mapping[str, Any]], corrections: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    start, length = found.timeframe.start(found.at), found.timeframe.length
    severities: dict[int, str] = {}
    at_us = np.array([epoch_us(row["observed_at"].replace(tzinfo=UTC)) for row in observations], np.int64)
    for place, row in zip(found.timeframe.places(found.at, at_us).tolist(), observations, strict=True):
        severities[place] = row["severity"]  # the last of a bucket counts
    buckets = [
        {
            "ts": format_time(start + place * length),
            "alignment": rounded(bucket.alignment),
            "samples": bucket.samples,
            "observed_severity": severities.get(place),
        }
        for place, bucket in enumerate(found.buckets)
    ]
    return {"history": buckets, "corrections": [_correction(row) for row in corrections]}


def _correction(row: Mapping[str, Any]) -> dict[str, Any]:
    numbers = ("factor", "target_alignment", "alignment_before", "alignment_after")
    return {
        "ts": format_time(row["corrected_at"].replace(tzinfo=UTC)),
        **{name: row[name] for name in ("strategy", "severity", "trend")},
        **{name: rounded(row[name]) for name in numbers},
        "forced": row["is_forced"],
        "automatic": row["is_automatic"],
    }


def _unknown(timeframe: str) -> dict[str, Any]:
    sentence = "No memory of the goal has its vector yet: ask again in a moment."
    return {
        "severity": "none",
        "trend": "stable",
        "recommendation": sentence,
        "timeframe": timeframe,
        "overall_drift": {"level": "None", **no_numbers(), "has_drifted": False, "samples": 0},
        "per_embedder_drift": [],
        "most_drifted_embedders": [],
        "recommendations": [sentence],
        "trend_detail": {"direction": "stable", "velocity": 0.0, "samples": 0, "projected_critical_in": None},
        "sufficient_data": False,
        "memories": 0,
    }


_MAYBE = {"type": ["number", "null"]}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_TEXTS = {"type": "array", "items": _TEXT}
_TREND = {"type": "string", "enum": ["improving", "stable", "worsening"]}


def _rows(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": {"type": "object", "properties": properties}}


TOOL = Tool(
    name="get_alignment_drift",
    toolset="context_graph",
    title="Drift from the goal",
    description="Get the current alignment drift state including severity, trend, and recommendations: the last "
    "memories of the timeframe against those in which the goal was found, in standard errors (`distance`).",
    kind="read",
    handler=get_alignment_drift,
    timeout_s=10.0,
    unavailable_code=DETECTOR,
    input_schema={
        "type": "object",
        "properties": {
            "timeframe": {"type": "string", "enum": list(TIMEFRAMES), "default": "24h", "description": "Until now"},
            "include_history": {"type": "boolean", "default": False, "description": "Show its buckets and corrections"},
        },
    },
    output_schema=writes.output_schema(
        {
            "severity": {"type": "string", "enum": list(SEVERITIES)},
            "trend": _TREND,
            "recommendation": _TEXT,
            "timeframe": _TEXT,
            "goal_id": _TEXT,
            "overall_drift": {
                "type": "object",
                "properties": {
                    "level": {"type": "string", "description": "Shown only: the share of the baseline that is left"},
                    "similarity": {**_MAYBE, "description": "Mean alignment of the last memories with the goal"},
                    "drift_score": {**_MAYBE, "description": "How far that is below the baseline"},
                    "baseline": {**_MAYBE, "description": "Mean alignment of the memories in which the goal was found"},
                    "rotation": {**_MAYBE, "description": "1 - cosine of the two mean purpose vectors"},
                    "distance": {**_MAYBE, "description": "Of both in standard errors; severity follows it"},
                    "has_drifted": {"type": "boolean"},
                    "samples": {**_COUNT, "description": "Memories that were compared"},
                },
            },
            "per_embedder_drift": _rows(
                {"embedder": _TEXT, "alignment": _MAYBE, "drift": _MAYBE, "deviations": _MAYBE}
            ),
            "most_drifted_embedders": _TEXTS,
            "recommendations": _TEXTS,
            "trend_detail": {
                "type": "object",
                "properties": {
                    "direction": _TREND,
                    "velocity": {"type": "number", "description": "Of the alignment a bucket"},
                    "samples": {**_COUNT, "description": "Buckets with data that it is told by"},
                    "projected_critical_in": {**_MAYBE, "description": "Buckets until severe, where it worsens"},
                },
            },
            "sufficient_data": {"type": "boolean", "description": "Whether ten memories were stored in the timeframe"},
            "memories": {**_COUNT, "description": "Stored in the timeframe"},
            "history": _rows(
                {
                    "ts": _TEXT,
                    "alignment": _MAYBE,
                    "samples": _COUNT,
                    "observed_severity": {"type": ["string", "null"], "description": "What the timer observed"},
                }
            ),
            "corrections": _rows(
                {"ts": _TEXT, "strategy": _TEXT, "alignment_before": _MAYBE, "automatic": {"type": "boolean"}}
            ),
            **GAP_FIELDS,
        }
    ),
)
