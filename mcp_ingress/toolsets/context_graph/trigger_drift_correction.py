"""trigger_drift_correction: searches lead back to the goal, by as much as drift calls for."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.drift_state import CORRECTOR, drift_reader, rounded
from processors.context_graph.read.corrections import PlannedCorrection, ProbeQueries, plan
from processors.context_graph.rules.corrections import STRATEGIES
from processors.context_graph.rules.drift import SEVERITIES
from processors.context_graph.rules.drift_series import TIMEFRAMES
from streams.errors import Refused

TIMEFRAME = "24h"


async def correct(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Try the correction on searches; publish it where it changes anything, and answer what it did."""
    force, target = arguments["force"], arguments.get("target_alignment")
    event = writes.request(call, "context.drift.corrected", {"forced": force, "target_alignment": target})
    await call.fresh(vectors=True)
    planned = await call.read(functools.partial(_planned, call, force, target))
    if planned.tried is None:
        return {"success": True, **_shown(planned, force)}
    event = writes.with_findings(event, planned.findings)
    published = await writes.publish(call, event)
    decided, problem = await writes.decision(call, published, event_id=event.id)
    answer = _shown(planned, force) | {"version": None if decided is None else decided["version"]}
    return writes.written(published, answer, pending=decided is None, problem=problem)


def _planned(call: Call, force: bool, target: float | None, cursor: duckdb.DuckDBPyConnection) -> PlannedCorrection:
    """What the state calls for. Raises Refused without a goal, without memories, and for a target out of reach."""
    drift = drift_reader(call, cursor, CORRECTOR)
    found = drift.observe(TIMEFRAMES[TIMEFRAME], call.clock.now())
    if found is None or not found.memories:
        message = "Nothing was stored in the last 24 hours: there is no drift to correct. Store some memories first."
        raise Refused(message, code=CORRECTOR, reason="insufficient_data")
    queries = call.part(ProbeQueries).encoded(call.services.embedder)
    planned = plan(drift, found, queries, force=force, target=target)
    tried = planned.tried
    if target is not None and tried is not None and target > tried.reachable:
        reachable = rounded(tried.reachable)
        message = (
            f"No order of the results has a mean alignment of {target}; give a `target_alignment` up to {reachable}."
        )
        raise Refused(message, reason="range", field="target_alignment", reachable=reachable)
    return planned


def _shown(planned: PlannedCorrection, force: bool) -> dict[str, Any]:
    tried, before = planned.tried, planned.weights_before
    state = rounded(planned.state)
    told: Mapping[str, Any] = {"severity": planned.severity, "trend": planned.observation.course.trend}
    after = before if tried is None else list(tried.correction.view_weights)
    if tried is None:
        result: dict[str, Any] = {"strategy_applied": "none", "factor": None, "iterations": 0, "improvement": 0.0}
        result |= {"alignment_before": state, "alignment_after": state, "target_alignment": state, "success": True}
    else:
        result = {"strategy_applied": tried.correction.strategy, "factor": rounded(tried.factor)}
        result |= {"iterations": tried.iterations, "improvement": rounded(tried.after - tried.before)}
        result |= {"alignment_before": rounded(tried.before), "alignment_after": rounded(tried.after)}
        result |= {"target_alignment": rounded(tried.target), "success": tried.success}
    return {
        "correction_result": result,
        "before_state": {**told, "alignment": result["alignment_before"], "weights": before},
        "after_state": {**told, "alignment": result["alignment_after"], "weights": after},
        "forced": force,
    }


_NUMBER, _MAYBE = {"type": "number"}, {"type": ["number", "null"]}
_STATE = {
    "type": "object",
    "properties": {
        "severity": {"type": "string", "enum": list(SEVERITIES), "description": "Of what is stored: it stays"},
        "trend": {"type": "string"},
        "alignment": {**_MAYBE, "description": "Mean of the first five results of searches"},
        "weights": {"type": "array", "items": _NUMBER, "description": "Of the views in the alignment that is added"},
    },
}

TOOL = Tool(
    name="trigger_drift_correction",
    toolset="context_graph",
    title="Correct drift",
    description="Manually trigger a drift correction cycle, by current drift severity: from then on `search_graph` "
    "reorders its first ten results towards the goal. Goal and memories stay; without drift nothing changes unless "
    "forced.",
    kind="write",
    handler=correct,
    timeout_s=30.0,
    unavailable_code=CORRECTOR,
    input_schema={
        "type": "object",
        "properties": {
            "force": {"type": "boolean", "default": False, "description": "Correct where nothing has drifted too"},
            "target_alignment": {
                "type": "number",
                "minimum": -1,
                "maximum": 1,
                "description": "Mean alignment wanted of results; one they have anyway lifts a correction",
            },
        },
    },
    output_schema=writes.output_schema(
        {
            "correction_result": {
                "type": "object",
                "properties": {
                    "strategy_applied": {"type": "string", "enum": list(STRATEGIES)},
                    "factor": {**_MAYBE, "description": "Of the strategy's usual dose"},
                    "iterations": {"type": "integer", "minimum": 0},
                    "alignment_before": _MAYBE,
                    "alignment_after": _MAYBE,
                    "improvement": _NUMBER,
                    "target_alignment": _MAYBE,
                    "success": {"type": "boolean"},
                },
            },
            "before_state": _STATE,
            "after_state": _STATE,
            "forced": {"type": "boolean"},
            "version": {"type": ["integer", "null"], "description": "Corrections until now"},
        }
    ),
)
