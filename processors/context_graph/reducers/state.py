"""Reducers of the state by which Context Graph searches: coupling, workspace, modulators. Memory topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import Any

from processors.context_graph.rules.modulators import (
    ADJUSTED,
    BROADCAST_DOPAMINE,
    MISSED_NORADRENALINE,
    NORADRENALINE,
    Adjusted,
    Levels,
    adjusted,
)
from processors.context_graph.rules.oscillators import COUPLING, clamped
from processors.context_graph.rules.workspace import (
    ALIGNMENT,
    IMPORTANCE,
    THRESHOLD,
    WHOLE,
    Competition,
    Contender,
    compete,
)
from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.context_state import (
    COUPLING_ADJUSTED,
    MEMORY_MISSED,
    MODULATOR_ADJUSTED,
    WORKSPACE_BROADCAST,
)
from streams.events import Event, LoggedEvent

COUPLINGS, MODULATORS = "context_couplings", "context_modulators"
WORKSPACES, BROADCASTS = "context_workspaces", "context_broadcasts"


def _coupling_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield COUPLINGS, ()


def _coupled(logged: LoggedEvent, rows: Rows) -> Outcome:
    event, row = logged.event, rows.get(COUPLINGS)
    new = clamped(event.data["coupling"])
    rows.put(COUPLINGS, {"coupling": new, "adjusted_at": at(event.time)})
    old = COUPLING if row is None else row["coupling"]
    return Outcome(result={"old_K": old, "new_K": new, "event_id": event.id})


def _modulator_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield MODULATORS, ()


def _modulated(logged: LoggedEvent, rows: Rows) -> Outcome:
    data = logged.event.data
    return _change(rows, logged.event, data["modulator"], data["delta"])


def _missed(logged: LoggedEvent, rows: Rows) -> Outcome:
    """A search that left out all it found: less is asked for, for some seconds."""
    return _change(rows, logged.event, NORADRENALINE.name, MISSED_NORADRENALINE)


def _change(rows: Rows, event: Event, name: str, delta: float) -> Outcome:
    """Add to one modulator; the outcome says what became of it."""
    before = levels_at(rows, at(event.time))
    found = _adjust(rows, event, name, delta)
    cascades = [{"modulator": other, "delta": step} for other, step in found.cascades]
    return Outcome(
        result={
            "modulator": name,
            "old_level": getattr(before, name),
            "new_level": getattr(found.levels, name),
            "delta_requested": delta,
            "delta_applied": found.applied,
            "cascades": cascades,
            "event_id": event.id,
        }
    )


def levels_at(rows: Rows, moment: datetime) -> Levels:
    """The levels of the namespace's modulators at this moment."""
    row = rows.get(MODULATORS)
    if row is None:
        return Levels()
    return Levels(*(row[name] for name in ADJUSTED)).later((moment - row["adjusted_at"]).total_seconds())


def _adjust(rows: Rows, event: Event, name: str, delta: float) -> Adjusted:
    moment = at(event.time)
    found = adjusted(levels_at(rows, moment), name, delta)
    rows.put(MODULATORS, {**asdict(found.levels), "adjusted_at": moment})
    return found


def _broadcast_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield from ((WORKSPACES, (each,)) for each in _workspaces(logged.event))
    yield MODULATORS, ()


def _broadcast(logged: LoggedEvent, rows: Rows) -> Outcome:
    """What a session broadcasts, its whole namespace has broadcast too; the session's competition decides."""
    event, data, moment = logged.event, logged.event.data, at(logged.event.time)
    importance, alignment = _number(data.get("importance"), IMPORTANCE), _number(data.get("alignment"), ALIGNMENT)
    new = Contender(data["memory_id"], _number(data.get("r"), 0.0), importance, alignment, moment)
    threshold, is_forced = _number(data.get("threshold"), THRESHOLD), bool(data.get("force"))
    found, *_ = [_compete(rows, each, new, threshold, is_forced=is_forced) for each in _workspaces(event)]
    told: dict[str, Any] = {"importance": importance, "alignment": alignment, "r": new.r, "score": new.score}
    told |= {"was_selected": found.was_selected, "losers": list(found.losers)}
    about = {"memory_id": new.memory_id, "session_id": _session(event), "is_forced": is_forced}
    rows.insert(BROADCASTS, {**about, **told, "broadcast_at": moment})
    raised = _adjust(rows, event, "dopamine", BROADCAST_DOPAMINE).applied if found.was_selected else 0.0
    return Outcome(
        result={"memory_id": new.memory_id, **told, "reason": found.reason, "dopamine": raised, "event_id": event.id}
    )


def _compete(rows: Rows, session_id: str, new: Contender, threshold: float, *, is_forced: bool) -> Competition:
    """Let a memory compete in one workspace, and keep what came of it."""
    row = rows.get(WORKSPACES, session_id) or {"candidates": [], "broadcasts": 0}
    known = [Contender.of_json(each) for each in row["candidates"]]
    found = compete(known, new, threshold, is_forced=is_forced)
    changed: dict[str, Any] = {"candidates": [each.as_json() for each in found.candidates]}
    if found.was_selected:
        changed |= {"memory_id": new.memory_id, "score": new.score, "broadcast_at": new.at}
        changed["broadcasts"] = row["broadcasts"] + 1
    rows.put(WORKSPACES, {**row, "session_id": session_id, **changed})
    return found


def _workspaces(event: Event) -> list[str]:
    """The session in which a memory competes, and the whole namespace."""
    return list(dict.fromkeys((_session(event), WHOLE)))


def _session(event: Event) -> str:
    return event.data.get("session_id") or WHOLE


def _number(value: float | None, default: float) -> float:
    return default if value is None else float(value)


REDUCERS = {
    COUPLING_ADJUSTED: Reducer(_coupled, _coupling_reads),
    MODULATOR_ADJUSTED: Reducer(_modulated, _modulator_reads),
    MEMORY_MISSED: Reducer(_missed, _modulator_reads),
    WORKSPACE_BROADCAST: Reducer(_broadcast, _broadcast_reads),
}
