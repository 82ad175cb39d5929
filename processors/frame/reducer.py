"""The frame of every reducer: `(rows it names, event) -> (row changes, outcome)`.

A reducer sees the state as of its event: what is stored, overlaid with what earlier events of the same batch
changed. It reads only tables that its own topic feeds, so that the result does not depend on how topics interleave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any, Literal, Protocol

from processors.frame.domains import modules_of
from storage.search.entries import DocumentEntry, PassageOf, VectorEntry
from storage.tables import Table
from streams.events import LoggedEvent
from streams.ids import document_label

Row = dict[str, Any]
Key = tuple[Any, ...]
DOCUMENTS, DOCUMENT_TAGS, RESTATEMENTS = "documents", "document_tags", "restatements"
EMBEDDINGS, PASSAGES, SPACES = "embeddings", "passages", "spaces"
TURNS, TURN_EMBEDDINGS, TURN_PASSAGES = "turns", "turn_embeddings", "turn_passages"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a request; `result` is what its tool answers from."""

    status: Literal["applied", "refused", "duplicate"] = "applied"
    code: str | None = None
    message: str | None = None
    result: Mapping[str, Any] = field(default_factory=dict)


class State(Protocol):
    """Where the frame's rows live: the overlay of a batch over the store."""

    def table(self, name: str) -> Table: ...

    def get(self, table: str, key: Key) -> Row | None: ...

    def insert(self, table: str, row: Row) -> None: ...

    def put(self, table: str, row: Row) -> None: ...

    def remove_all(self, table: str, column: str, value: Any) -> None: ...


@dataclass
class Indexed:
    """What a batch adds to the indexes."""

    documents: list[DocumentEntry] = field(default_factory=list)
    vectors: list[VectorEntry] = field(default_factory=list)
    turns: list[DocumentEntry] = field(default_factory=list)
    turn_vectors: list[VectorEntry] = field(default_factory=list)

    def add(self, other: Indexed) -> None:
        """Take in what another part of the batch adds."""
        self.documents += other.documents
        self.vectors += other.vectors
        self.turns += other.turns
        self.turn_vectors += other.turn_vectors


class Rows:
    """What one event may read and change."""

    def __init__(self, state: State, logged: LoggedEvent, indexed: Indexed) -> None:
        self._state = state
        self._logged = logged
        self._indexed = indexed
        self.origin = origin_of(logged)

    def get(self, table: str, *key: Any) -> Row | None:
        """The row with this primary key (after the namespace). Quick when `reads` named it."""
        return self._state.get(table, (self._logged.event.namespace, *key))

    def shared(self, table: str, *key: Any) -> Row | None:
        """The row of a table whose primary key has no namespace."""
        return self._state.get(table, key)

    def remove_all(self, table: str, column: str, value: Any) -> None:
        """Delete every row of the table with this value, once the batch is stored."""
        self._state.remove_all(table, column, value)

    def insert(self, table: str, row: Row) -> None:
        """Append a row; it comes from this event. Raises TypeError for a column that the table does not have."""
        self._state.insert(table, self._from_here(table, row))

    def put(self, table: str, row: Row) -> None:
        """Insert, or replace the row with the same primary key. Raises TypeError as `insert`."""
        self._state.put(table, self._from_here(table, row))

    def change(self, table: str, row: Row, /, **values: Any) -> None:
        """Replace these values of a row that was read; it comes from this event now. Raises TypeError as `insert`."""
        self.put(table, row | values)

    def restate(self, record_id: str, moment: datetime) -> None:
        """The record was stated again then: what changed it before does so no longer. UTC without a zone."""
        self.insert(RESTATEMENTS, {"record_id": record_id, "stated_at": moment})

    def complete(self, table: str, row: Row) -> None:
        """Put a row that several events make up, in any order.

        Its `event_id` names the event that began it; its place on the log is that of the event that changed it last.
        Raises TypeError as `insert`.
        """
        changed = self._from_here(table, row)
        changed["event_id"] = row.get("event_id") or self._logged.event.id
        self._state.put(table, changed)

    def _from_here(self, table: str, row: Row) -> Row:
        return self._state.table(table).with_origin(row, self.origin)

    def document(
        self,
        record_id: str,
        toolset: str,
        kind: str,
        text: str,
        *,
        created_at: datetime,
        session_id: str | None = None,
        role: str | None = None,
        domain: str | None = None,
        tags: Iterable[str] | None = None,
    ) -> None:
        """Make a text searchable under its record id, and its tags a filter. The first text of a record stays.

        `role`: of the speaker, where a message says it (`user`, `assistant`).
        """
        label = document_label(self._logged.event.namespace, record_id)
        if self.shared(DOCUMENTS, label) is not None:
            return
        connection = self._logged.event.connection if session_id is None else None
        self.put(
            DOCUMENTS,
            {
                "label": label,
                "record_id": record_id,
                "toolset": toolset,
                "kind": kind,
                "session_id": session_id,
                "domain": domain,
                "text": text,
                "created_at": created_at,
                "connection": connection,
            },
        )
        event = self._logged.event
        place = (session_id, created_at, (toolset, kind), connection)
        entry = DocumentEntry(label, event.namespace, text, *place, role, event.id, record_id, domain)
        self._indexed.documents.append(entry)
        for tag in dict.fromkeys(tags or ()):
            self.put(DOCUMENT_TAGS, {"record_id": record_id, "tag": tag})

    def turn(
        self, record_id: str, text: str, *, created_at: datetime, session_id: str, role: str, source: str | None
    ) -> None:
        """Make what somebody said in a captured session searchable. The first text of a record stays."""
        namespace = self._logged.event.namespace
        label = document_label(namespace, record_id)
        if self.shared(TURNS, label) is not None:
            return
        row = {"label": label, "record_id": record_id, "session_id": session_id, "role": role, "source": source}
        self.put(TURNS, row | {"text": text, "created_at": created_at})
        entry = DocumentEntry(label, namespace, text, session_id, created_at, role=role)
        self._indexed.turns.append(entry)

    def embed(self, row: Row, *, of_turn: bool = False) -> None:
        """Keep a record's vector (a row of `embeddings` with its `vector`, unit length). The first of a space stays.

        A space that was dropped takes none: facts that were still on their way do not bring it back.
        """
        table, vectors = (
            (TURN_EMBEDDINGS, self._indexed.turn_vectors) if of_turn else (EMBEDDINGS, self._indexed.vectors)
        )
        if not self._is_dropped(row["space"]) and self.shared(table, row["label"], row["space"]) is None:
            self.put(table, row)
            made = row["vector"], row["space"], row["model_id"], row.get("tokens")
            vectors.append(VectorEntry(row["label"], *made, passages=row.get("passages")))

    def embed_passage(self, row: Row, *, of_turn: bool = False) -> None:
        """Keep the vector of a part of a long text (a row of `passages`), as `embed` does."""
        table, vectors = (TURN_PASSAGES, self._indexed.turn_vectors) if of_turn else (PASSAGES, self._indexed.vectors)
        if not self._is_dropped(row["space"]) and self.shared(table, row["label"], row["space"]) is None:
            self.put(table, row)
            place = PassageOf(row["owner_label"], row["number"], row["char_start"], row["char_end"])
            vectors.append(
                VectorEntry(row["label"], row["vector"], row["space"], row["model_id"], row["tokens"], place)
            )

    def _is_dropped(self, name: str) -> bool:
        space = self.shared(SPACES, name)
        return space is not None and space["state"] == "dropped"


@dataclass(frozen=True)
class Reducer:
    """How events of a type change rows: `apply` decides, `reads` names the rows that it asks for.

    They are fetched a batch at a time: (table, primary key), the key without its namespace where it has one.
    """

    apply: Callable[[LoggedEvent, Rows], Outcome | None]
    reads: Callable[[LoggedEvent], Iterable[tuple[str, Key]]] = lambda logged: ()


@cache
def reducers() -> Mapping[str, Reducer]:
    """Every reducer by event type, found in the `reducers` of each domain."""
    found: dict[str, Reducer] = {}
    for module in modules_of("reducers"):
        for event_type, reducer in getattr(module, "REDUCERS", {}).items():
            if event_type in found:
                raise AssertionError(f"two reducers for {event_type}")
            found[event_type] = reducer
    return found


def origin_of(logged: LoggedEvent) -> Row:
    """Where a row that this event decides comes from: the columns ORIGIN of `storage.tables`."""
    position = logged.position
    return {
        "namespace": logged.event.namespace,
        "topic": position.topic,
        "partition": position.partition,
        "offset": position.offset,
        "idx": logged.index,
        "event_id": logged.event.id,
    }


def at(moment: datetime) -> datetime:
    """The UTC time of an event as the tables keep it."""
    return moment.replace(tzinfo=None)
