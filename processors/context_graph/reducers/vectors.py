"""Reducers of Context Graph's vectors, of the synergy of its views, and of its profiles. Memory topic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

import numpy as np

from processors.context_graph.reducers.calibration import judgement_reads, keep_judgement
from processors.context_graph.rules import profiles, synergy
from processors.context_graph.rules.correlations import PAIRS
from processors.context_graph.rules.memories import vector_id_of
from processors.frame.reducer import Key, Outcome, Reducer, Row, Rows, at
from streams.event_types.context_vectors import PROFILE_CHANGED, SYNERGY_UPDATED, VECTOR_COMPUTED, VECTOR_FUSED
from streams.events import Event, LoggedEvent

VECTORS, SYNERGY = "context_vectors", "context_synergy"
PROFILES, PROFILE_COUNTS = "context_profiles", "context_profile_counts"
INVALID = "invalid_argument"
_COMPUTED = ("content", "profile_id", "purpose_vector", "cross_correlations", "group_alignments", "confidence")
_FUSED = ("memory_id", "profile_id", "fusion_method", "weights", "vector", "confidence")


def _vector_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield VECTORS, (vector_id_of(logged.event),)


def _computed(logged: LoggedEvent, rows: Rows) -> Outcome:
    return _put_vector(logged.event, rows, "computed", _COMPUTED, is_provisional=logged.event.data.get("provisional"))


def _fused(logged: LoggedEvent, rows: Rows) -> Outcome:
    return _put_vector(logged.event, rows, "fused", _FUSED)


def _put_vector(event: Event, rows: Rows, kind: str, names: Iterable[str], **more: Any) -> Outcome:
    identity = vector_id_of(event)
    told = {name: event.data.get(name) for name in names}
    rows.put(VECTORS, {"vector_id": identity, "kind": kind, "created_at": at(event.time), **told, **more})
    return Outcome(result={"vector_id": identity, "event_id": event.id})


def _synergy_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield SYNERGY, ()
    yield from judgement_reads()


def _judged(logged: LoggedEvent, rows: Rows) -> Outcome:
    data, row = logged.event.data, rows.get(SYNERGY)
    matrix = synergy.INITIAL if row is None else synergy.from_pairs(row["pairs"])
    learned = synergy.learn(
        matrix,
        np.array(data["alignments"], np.float64),  # null is NaN
        data["score"],
        data.get("learning_rate") or synergy.RATE,
        data.get("update_scope") or "contributing_pairs",
    )
    keep_judgement(logged.event, rows)
    version = (0 if row is None else row["version"]) + 1
    rows.put(
        SYNERGY, {"pairs": learned.matrix[PAIRS].tolist(), "version": version, "updated_at": at(logged.event.time)}
    )
    told = {name: value for name, value in vars(learned).items() if name != "matrix"}
    return Outcome(result=told | {"version": version, "event_id": logged.event.id})


def _profile_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield PROFILES, (logged.event.data["profile_id"],)
    yield PROFILE_COUNTS, ()


def _changed(logged: LoggedEvent, rows: Rows) -> Outcome:
    """System profiles have no rows: nothing changes them."""
    data, identity = logged.event.data, logged.event.data["profile_id"]
    if identity in profiles.SYSTEM:
        taken = data["action"] == "create"
        why = "has this id already" if taken else "is always there and never changes"
        sentence = f"The system profile {identity!r} {why}: create a profile under another id."
        return _refused("conflict" if taken else "read_only", "profile_id", sentence)
    row = rows.get(PROFILES, identity)
    row = None if row is None or row["is_deleted"] else row
    if data["action"] == "create":
        return _create(logged.event, rows, row)
    if row is None:
        return _refused("not_found", "profile_id", profiles.missing(identity))
    if data["action"] == "delete":
        rows.change(PROFILES, row, is_deleted=True, updated_at=at(logged.event.time))
        _count(rows, -1)
        return Outcome(result={"profile_id": identity, "deleted": True, "event_id": logged.event.id})
    return _put_profile(logged.event, rows, row)


def _create(event: Event, rows: Rows, row: Row | None) -> Outcome:
    identity = event.data["profile_id"]
    if row is not None:
        sentence = f"There is a profile {identity!r} already: update it, or create one under another id."
        return _refused("conflict", "profile_id", sentence)
    if (rows.get(PROFILE_COUNTS) or {"profiles": 0})["profiles"] >= profiles.MAX_PROFILES:
        sentence = f"There are {profiles.MAX_PROFILES} profiles, the most there can be: delete one first."
        return _refused("conflict", "profile_id", sentence)
    outcome = _put_profile(event, rows, None)
    if outcome.status == "applied":
        _count(rows, 1)
    return outcome


def _put_profile(event: Event, rows: Rows, row: Row | None) -> Outcome:
    moment = at(event.time)
    try:
        if row is None:
            named = {"name": event.data.get("name") or event.data["profile_id"]}
            profile = profiles.created({**event.data, **named})
        else:
            profile = profiles.updated(profiles.profile_of(row), event.data)
    except profiles.ProfileError as error:
        return _refused("range", error.field, str(error))
    kept = asdict(profile) | {"embedder_weights": list(profile.embedder_weights)}
    del kept["is_system"]
    times = {"created_at": moment if row is None else row["created_at"], "updated_at": moment}
    rows.put(PROFILES, {**kept, "is_deleted": False, **times})
    return Outcome(
        result={"profile_id": profile.profile_id, "profile": profiles.shown(profile, **times), "event_id": event.id}
    )


def _count(rows: Rows, change: int) -> None:
    rows.put(PROFILE_COUNTS, {"profiles": (rows.get(PROFILE_COUNTS) or {"profiles": 0})["profiles"] + change})


def _refused(reason: str, field: str, sentence: str) -> Outcome:
    return Outcome("refused", INVALID, sentence, {"reason": reason, "field": field})


REDUCERS = {
    VECTOR_COMPUTED: Reducer(_computed, _vector_reads),
    VECTOR_FUSED: Reducer(_fused, _vector_reads),
    SYNERGY_UPDATED: Reducer(_judged, _synergy_reads),
    PROFILE_CHANGED: Reducer(_changed, _profile_reads),
}
