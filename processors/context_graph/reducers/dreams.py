"""Reducers of dreams: which begins and is aborted (memory topic), how far each came (derived topic)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from processors.context_graph.rules.idleness import refusal_of
from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.context_dreams import DREAM_ABORTED, DREAM_FINISHED, DREAM_PROGRESSED, DREAM_REQUESTED
from streams.events import Event, LoggedEvent
from streams.ids import derived_id

DREAMS, LAST_DREAMS, REPORTS = "context_dreams", "context_last_dreams", "context_dream_reports"


def dream_id_of(event: Event) -> str:
    """The id of the dream that a request begins, if it begins one."""
    return derived_id(str(event.key), "context.dream")


def _requested_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield LAST_DREAMS, ()
    yield DREAMS, (dream_id_of(logged.event),)


def _requested(logged: LoggedEvent, rows: Rows) -> Outcome:
    """Begin a dream, unless another may still run or somebody works. Whether one has ended, the request says."""
    event, last = logged.event, rows.get(LAST_DREAMS)
    data, forced = event.data, bool(event.data.get("force"))
    is_dreaming = last is not None and last["dream_id"] != data.get("ended_dream_id")
    reason = "already_dreaming" if is_dreaming else refusal_of(data["activity"], forced=forced)
    if reason is not None:
        running = last["dream_id"] if is_dreaming and last is not None else None
        return _told(event, triggered=False, reason=reason, dream_id=running)
    identity, moment = dream_id_of(event), at(event.time)
    about = {"is_forced": forced, "activity": float(data["activity"]), "cause": data.get("cause") or "asked"}
    rows.put(DREAMS, {"dream_id": identity, **about, "started_at": moment, "aborted_at": None})
    rows.put(LAST_DREAMS, {"dream_id": identity})
    return _told(event, triggered=True, reason="started", dream_id=identity)


def _aborted_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield DREAMS, (logged.event.data["dream_id"],)


def _aborted(logged: LoggedEvent, rows: Rows) -> Outcome:
    """The first abort of a dream counts."""
    event, identity = logged.event, logged.event.data["dream_id"]
    dream = rows.get(DREAMS, identity)
    is_first = dream is not None and dream["aborted_at"] is None
    if dream is not None and is_first:
        rows.change(DREAMS, dream, aborted_at=at(event.time))
    return _told(event, aborted=is_first, dream_id=identity)


def _told(event: Event, **result: Any) -> Outcome:
    return Outcome(result={**result, "event_id": event.id})


def _report_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield REPORTS, (logged.event.data["dream_id"],)


def _progressed(logged: LoggedEvent, rows: Rows) -> None:
    """A dream that is over stays so."""
    data = logged.event.data
    known = rows.get(REPORTS, data["dream_id"])
    if known is None or known["state"] != "Awake":
        _put(logged.event, rows, state=data["state"], wake_reason=None)


def _finished(logged: LoggedEvent, rows: Rows) -> None:
    """The first end of a dream stands."""
    data = logged.event.data
    known = rows.get(REPORTS, data["dream_id"])
    if known is None or known["state"] != "Awake":
        _put(logged.event, rows, state="Awake", wake_reason=data["wake_reason"])


def _put(event: Event, rows: Rows, *, state: str, wake_reason: str | None) -> None:
    data = event.data
    about = {"dream_id": data["dream_id"], "state": state, "wake_reason": wake_reason, "report": dict(data["report"])}
    rows.put(REPORTS, {**about, "is_complete": wake_reason == "cycle_complete", "reported_at": at(event.time)})


REDUCERS = {
    DREAM_REQUESTED: Reducer(_requested, _requested_reads),
    DREAM_ABORTED: Reducer(_aborted, _aborted_reads),
    DREAM_PROGRESSED: Reducer(_progressed, _report_reads),
    DREAM_FINISHED: Reducer(_finished, _report_reads),
}
