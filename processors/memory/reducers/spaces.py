"""Spaces of vectors: registered, switched to, dropped. Exactly one answers; what answers cannot be dropped."""

from __future__ import annotations

from collections.abc import Iterable

from processors.frame.reducer import (
    EMBEDDINGS,
    PASSAGES,
    SPACES,
    TURN_EMBEDDINGS,
    TURN_PASSAGES,
    Key,
    Outcome,
    Reducer,
    Rows,
    at,
)
from processors.memory.reducers.vectors import EMBEDDING_FAILURES
from streams.event_types.spaces import SPACE_DROPPED, SPACE_REGISTERED, SPACE_SWITCHED
from streams.events import LoggedEvent

LIVE_SPACES = "live_spaces"
KIND = "text"
"""One live space for each kind of what is embedded."""
BUILDING, LIVE, KEPT, DROPPED = "building", "live", "kept", "dropped"
_FIELDS = (
    "space", "embedder", "model_id", "revision", "dim", "dtype", "max_tokens", "pooling",
    "query_prefix", "document_prefix", "provider",
)  # fmt: skip


def _reads(logged: LoggedEvent) -> Iterable[tuple[str, Key]]:
    yield SPACES, (logged.event.data["space"],)
    yield LIVE_SPACES, (KIND,)


def _registered(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """Building, unless it answers already. A space keeps the model and revision that it was registered with first."""
    data = logged.event.data
    known = rows.shared(SPACES, data["space"])
    if known is None:
        made = {name: data[name] for name in _FIELDS} | {"is_trained": data["trained"], "switched_at": None}
        rows.put(SPACES, made | {"state": BUILDING, "registered_at": at(logged.event.time), "dropped_at": None})
    elif known["state"] in (KEPT, DROPPED) and known["revision"] == data["revision"]:
        rows.change(SPACES, known, state=BUILDING, registered_at=at(logged.event.time), dropped_at=None)
    return None


def _switched(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    space, moment = logged.event.data["space"], at(logged.event.time)
    chosen, live = rows.shared(SPACES, space), rows.shared(LIVE_SPACES, KIND)
    if chosen is None or chosen["state"] == DROPPED or (live is not None and live["space"] == space):
        return None
    former = rows.shared(SPACES, live["space"]) if live else None
    if former is not None:
        rows.change(SPACES, former, state=KEPT)
    rows.change(SPACES, chosen, state=LIVE, switched_at=moment)
    rows.put(LIVE_SPACES, {"kind": KIND, "space": space, "switched_at": moment})
    return None


def _dropped(logged: LoggedEvent, rows: Rows) -> Outcome | None:
    """Its vectors go, and those that are still on their way are not kept (see `Rows.embed`)."""
    space = rows.shared(SPACES, logged.event.data["space"])
    if space is not None and space["state"] in (BUILDING, KEPT):
        rows.change(SPACES, space, state=DROPPED, dropped_at=at(logged.event.time))
        for table in (EMBEDDINGS, PASSAGES, TURN_EMBEDDINGS, TURN_PASSAGES, EMBEDDING_FAILURES):
            rows.remove_all(table, "space", space["space"])
    return None


REDUCERS = {
    SPACE_REGISTERED: Reducer(_registered, _reads),
    SPACE_SWITCHED: Reducer(_switched, _reads),
    SPACE_DROPPED: Reducer(_dropped, _reads),
}
