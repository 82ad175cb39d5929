"""Findings about beliefs become rows: tensions, each pair once, and entities that are one.

Fed by the derived topic only.
"""

from __future__ import annotations

from collections.abc import Iterable

from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.valence import ENTITY_RESOLVED, TENSION_DETECTED
from streams.events import LoggedEvent

FINDINGS, MERGES = "tension_findings", "entity_resolutions"
_FOUND = (
    "tension_id",
    "belief_a_id",
    "belief_b_id",
    "type",
    "severity",
    "description",
    "signal",
    "score",
    "materiality",
    "cosine",
    "model_id",
    "is_trained",
    "consistency_a",
    "consistency_b",
    "suggested_action",
)


def _detected_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield FINDINGS, (logged.event.data["tension_id"],)


def _detected(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    if rows.get(FINDINGS, data["tension_id"]) is None:
        rows.put(FINDINGS, {name: data.get(name) for name in _FOUND} | {"detected_at": at(logged.event.time)})
    return None


def _merged_reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield MERGES, (logged.event.data["entity_id"],)
    yield MERGES, (logged.event.data["canonical_id"],)


def _merged(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """The first merge of an entity stands; one into a merged entity goes where that one went."""
    data = logged.event.data
    further = rows.get(MERGES, data["canonical_id"])
    canonical_id = further["canonical_id"] if further else data["canonical_id"]
    if rows.get(MERGES, data["entity_id"]) is None and canonical_id != data["entity_id"]:
        row = {"entity_id": data["entity_id"], "canonical_id": canonical_id, "how": data["how"]}
        rows.put(MERGES, row | {"resolved_at": at(logged.event.time)})
    return None


REDUCERS = {
    TENSION_DETECTED: Reducer(_detected, _detected_reads),
    ENTITY_RESOLVED: Reducer(_merged, _merged_reads),
}
