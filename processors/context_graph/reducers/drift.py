"""Reducers of drift: what was observed of it (derived topic), and how it was corrected (memory topic)."""

from __future__ import annotations

from collections.abc import Iterable

from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.context_drift import DRIFT_CORRECTED, DRIFT_OBSERVED
from streams.events import LoggedEvent

OBSERVATIONS = "context_drift_observations"
CORRECTIONS, HISTORY = "context_corrections", "context_correction_history"
_OBSERVED = (
    *("goal_id", "severity", "trend", "alignment", "baseline", "drift_score", "rotation"),
    *("samples", "memories"),
)
_IN_FORCE = ("goal_id", "strategy", "severity", "goal_weight", "view_weights", "threshold", "penalty")
_TOLD = (
    *("goal_id", "strategy", "severity", "trend", "factor", "iterations"),
    *("target_alignment", "alignment_before", "alignment_after"),
)


def _observed(logged: LoggedEvent, rows: Rows) -> Outcome:
    data = logged.event.data
    told = {name: data[name] for name in _OBSERVED}
    moved = data.get("most_drifted_embedders") or []
    rows.insert(OBSERVATIONS, {"observed_at": at(logged.event.time), **told, "most_drifted_embedders": moved})
    return Outcome()


def _correction_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield CORRECTIONS, ()


def _corrected(logged: LoggedEvent, rows: Rows) -> Outcome:
    """The last correction holds: each says the whole of what searches add, so that none builds on another."""
    event, data = logged.event, logged.event.data
    before = rows.get(CORRECTIONS)
    about = {"version": 1 if before is None else before["version"] + 1, "corrected_at": at(event.time)}
    rows.put(CORRECTIONS, {name: data.get(name) for name in _IN_FORCE} | about)
    told = {name: data.get(name) for name in _TOLD}
    how = {"is_forced": bool(data.get("forced")), "is_automatic": bool(data.get("automatic"))}
    rows.insert(HISTORY, told | how | about)
    return Outcome(result={"version": about["version"], "event_id": event.id})


REDUCERS = {
    DRIFT_OBSERVED: Reducer(_observed),
    DRIFT_CORRECTED: Reducer(_corrected, _correction_reads),
}
