"""Invocation records become rows."""

from __future__ import annotations

from processors.frame.reducer import Outcome, Reducer, Rows, at
from streams.event_types.invocations import TOOL_INVOKED
from streams.events import LoggedEvent

INVOCATIONS = "invocations"


def _invoked(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    data = logged.event.data
    names = (
        "toolset",
        "outcome",
        "error_code",
        "request_id",
        "session_id",
        "client",
        "duration_ms",
        "input_bytes",
        "output_bytes",
    )
    row = {name: data.get(name) for name in names}
    rows.insert(
        INVOCATIONS,
        row | {"invocation_id": logged.event.id, "tool_name": data["tool"], "started_at": at(logged.event.time)},
    )
    return None


REDUCERS = {TOOL_INVOKED: Reducer(_invoked)}
