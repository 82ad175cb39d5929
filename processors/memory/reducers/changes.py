"""A memory that changes what earlier ones say: each pair is kept once. Fed by the derived topic only."""

from __future__ import annotations

from collections.abc import Iterable

from processors.frame.reducer import Key, Outcome, Reducer, Rows, at
from streams.event_types.memory import CHANGE_FOUND
from streams.events import LoggedEvent

CHANGES = "memory_changes"


def _reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    newer = logged.event.data["record_id"]
    yield from ((CHANGES, (newer, older["record_id"])) for older in logged.event.data["older"])


def _change_found(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    for older in data["older"]:
        pair = data["record_id"], older["record_id"]
        if pair[0] != pair[1] and rows.get(CHANGES, *pair) is None:
            row = {"newer_id": pair[0], "older_id": pair[1], "cosine": older.get("cosine")}
            rows.put(CHANGES, row | {"model_id": data.get("model_id"), "found_at": at(logged.event.time)})
    return None


REDUCERS = {CHANGE_FOUND: Reducer(_change_found, _reads)}
