"""What both tools of drift read and say: the state of a namespace against its goal."""

from __future__ import annotations

from typing import Any

import duckdb

from mcp_ingress.call import Call
from mcp_ingress.toolsets.context_graph.reader import reader_of
from processors.context_graph.read.drift import DriftCache, DriftReader, Observation
from processors.context_graph.read.goals import Purposes
from processors.context_graph.rules.corrections import strategy_of
from processors.context_graph.rules.drift_series import TIMEFRAMES
from streams.errors import Refused

DIGITS = 6
DETECTOR, CORRECTOR = "drift_detector_error", "drift_corrector_error"
_BOOTSTRAP = "Call `auto_bootstrap_north_star` first; it finds the goal in what is stored."


def drift_reader(call: Call, cursor: duckdb.DuckDBPyConnection, code: str) -> DriftReader:
    """What reads the drift of this namespace. Raises Refused with the tool's code before there is a goal."""
    goal = call.part(Purposes).north_star(cursor, call.namespace)
    if goal is None:
        sentence = f"There is no North Star from which anything could drift. {_BOOTSTRAP}"
        raise Refused(sentence, code=code, reason="no_north_star", remedy=_BOOTSTRAP)
    return DriftReader(reader_of(call, cursor), call.part(Purposes), call.part(DriftCache), goal)


def observe(call: Call, cursor: duckdb.DuckDBPyConnection, code: str, timeframe: str) -> Observation | None:
    """The state now; None while no memory can be compared. Raises as `drift_reader`."""
    return drift_reader(call, cursor, code).observe(TIMEFRAMES[timeframe], call.clock.now())


def advice(found: Observation) -> str:
    """What to do, as a sentence."""
    if found.goal.is_provisional:
        return "The goal stands on one or two memories: store more and call `auto_bootstrap_north_star` again."
    if not found.is_sufficient:
        return f"Only {found.memories} memories were stored in this time: too few to tell drift. Ask for a longer one."
    severity, moved = found.severity, ", ".join(found.drift.most_drifted)
    correction = f"`trigger_drift_correction` ({strategy_of(severity, found.course.trend)})"
    return {
        "none": "Nothing to do: what is stored belongs to the goal.",
        "mild": f"Watch it: the last memories are at the edge of the goal, most of all in {moved}.",
        "moderate": f"Call {correction}, unless the work is meant to move on: {moved} moved.",
        "severe": f"The last memories are of another matter. Call {correction} so that searches lead back, or "
        "keep the new matter in a namespace of its own.",
    }[severity]


def rounded(value: float | None) -> float | None:
    """A number as it is told."""
    return None if value is None else round(float(value), DIGITS)


def no_numbers() -> dict[str, Any]:
    """The numbers of a state that cannot be told yet."""
    return dict.fromkeys(("similarity", "drift_score", "baseline", "rotation", "distance"))
