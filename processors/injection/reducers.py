"""Keeps what a client was given without asking as rows."""

from __future__ import annotations

from processors.frame.reducer import Outcome, Reducer, Rows, at
from streams.event_types.injection import CONTEXT_INJECTED
from streams.events import LoggedEvent

INJECTIONS = "injections"


def _injected(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    rows.insert(
        INJECTIONS,
        {
            "session_id": data["session_id"],
            "hook": data["hook"],
            "prompt_digest": data.get("prompt_digest"),
            "record_ids": [record["record_id"] for record in data["records"]],
            "scores": [record.get("score") for record in data["records"]],
            "tokens": data["tokens"],
            "injected_at": at(logged.event.time),
        },
    )
    return None


REDUCERS = {CONTEXT_INJECTED: Reducer(_injected)}
