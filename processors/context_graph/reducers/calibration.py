"""Reducers of judged results (memory topic): they are kept, and recalibrations learn from them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

import numpy as np

from processors.context_graph.rules.calibration import JudgedResult, metrics_of, shown_metrics
from processors.context_graph.rules.recalibration import KEPT, LEVELS, Learned, decide
from processors.context_graph.rules.thresholds import GENERAL, THRESHOLDS, values_of
from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.context_calibration import THRESHOLD_RECALIBRATED
from streams.events import Event, LoggedEvent
from streams.ids import derived_id

CALIBRATIONS, JUDGEMENTS, LEARNED_THRESHOLDS = "context_calibrations", "context_judgements", "context_thresholds"
RELEVANT = 0.5
"""A result with at least this score was relevant."""


def keep_judgement(event: Event, rows: Rows) -> None:
    """Keep what a `context.synergy.updated` judges, in place of the one that is KEPT judgements older."""
    data, row = event.data, rows.get(CALIBRATIONS)
    learned = Learned.of(row)
    judged = {
        "is_relevant": data["score"] >= RELEVANT,
        "similarity": data.get("similarity"),
        "prior": data.get("prior"),
        "alignments": [float("nan") if value is None else value for value in data["alignments"]],
    }
    learned = learned.after(JudgedResult.of(judged))
    about = {"query_vector_id": data["query_vector_id"], "memory_id": data["result_vector_id"]}
    kept = {"slot": (learned.judgements - 1) % KEPT, "number": learned.judgements, "judged_at": at(event.time)}
    rows.put(JUDGEMENTS, {**kept, **about, **judged, "alignments": data["alignments"]})
    rows.put(CALIBRATIONS, {"fitted_at": None if row is None else row["fitted_at"], **learned.to_row()})


def judgement_reads() -> Iterable[tuple[str, Key]]:
    """The rows that `keep_judgement` will ask for."""
    yield CALIBRATIONS, ()


def _reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield CALIBRATIONS, ()
    domain = logged.event.data.get("domain") or GENERAL
    for name in THRESHOLDS:
        yield LEARNED_THRESHOLDS, (domain, name)
    for slot in range(KEPT):
        yield JUDGEMENTS, (slot,)


def _recalibrated(logged: LoggedEvent, rows: Rows) -> Outcome:
    event = logged.event
    level, domain, moment = event.data["level"], event.data.get("domain") or GENERAL, at(event.time)
    row = rows.get(CALIBRATIONS)
    learned, judgements = Learned.of(row), _judgements(rows)
    stored = {name: kept["value"] for name in THRESHOLDS if (kept := rows.get(LEARNED_THRESHOLDS, domain, name))}
    chance = np.random.default_rng(UUID(derived_id(THRESHOLD_RECALIBRATED, event.id)).int)
    decision = decide(level, learned, values_of(domain, stored), judgements, domain, chance)
    for name, value in decision.thresholds.items():
        changed = {"domain": domain, "name": name, "value": value, "level": level, "changed_at": moment}
        rows.put(LEARNED_THRESHOLDS, changed)
    if decision.learned != learned:
        fitted_at = moment if level == 2 else None if row is None else row["fitted_at"]
        rows.put(CALIBRATIONS, {"fitted_at": fitted_at, **decision.learned.to_row()})
    before, after = (metrics_of(judgements, each.calibrations) for each in (learned, decision.learned))
    told: dict[str, Any] = {"level": level, "level_name": LEVELS[level], "domain": domain, "action": decision.action}
    told |= {"description": decision.description, "changes": list(decision.changes), "reason": decision.reason}
    measures = {"metrics_before": shown_metrics(before), "metrics_after": shown_metrics(after)}
    return Outcome(result={**told, **measures, "event_id": event.id})


def _judgements(rows: Rows) -> list[JudgedResult]:
    """The newest, oldest first."""
    kept = [row for slot in range(KEPT) if (row := rows.get(JUDGEMENTS, slot)) is not None]
    return [JudgedResult.of(row) for row in sorted(kept, key=lambda row: row["number"])]


REDUCERS = {THRESHOLD_RECALIBRATED: Reducer(_recalibrated, _reads)}
