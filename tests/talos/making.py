"""Events and rows for the tests of Talos."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from processors.frame.reducer import Indexed, Key, Outcome, Row, Rows, reducers
from storage.tables import Table
from streams.events import Event, LoggedEvent, wire_type
from streams.positions import Position
from streams.topics import MEMORY
from tests.schema import tables

NOON = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)
SEED_ENTRY = (
    "I realized that friction points are more valuable to track than emotional states because they're operationally "
    "verifiable. This connects to the epistemic humility principle—model what you can verify."
)


def make_event(
    short_type: str, data: dict[str, Any], *, event_id: str = "event-1", time: datetime = NOON, namespace: str = "home"
) -> Event:
    return Event(event_id, "test", wire_type(short_type), namespace, time, data)


def entry(content: str, category: str = "insight", **more: Any) -> Event:
    event_id = more.pop("event_id", "event-1")
    time = more.pop("time", NOON)
    return make_event(
        "talos.journal.written", {"content": content, "category": category, **more}, event_id=event_id, time=time
    )


def friction(description: str, category: str = "tooling", **more: Any) -> Event:
    return make_event("talos.friction.logged", {"description": description, "category": category, **more})


class DictState:
    """The frame's state in two dicts. It fails when a reducer gets a row that its `reads` did not name."""

    keys = {
        "talos_sessions": ("namespace", "session_id"),
        "talos_names": ("namespace", "label", "name"),
        "documents": ("label",),
        "corrections": ("namespace", "record_id"),
        "journal_versions": ("namespace", "entry_id"),
    }

    def __init__(self) -> None:
        self.keyed: dict[tuple[str, Key], Row] = {}
        self.inserted: list[tuple[str, Row]] = []
        self.named: set[tuple[str, Key]] = set()

    def get(self, table: str, key: Key) -> Row | None:
        assert (table, key) in self.named, f"{table} {key} was read but not named"
        return self.keyed.get((table, key))

    def insert(self, table: str, row: Row) -> None:
        self.inserted.append((table, row))

    def table(self, name: str) -> Table:
        return tables()[name]

    def put(self, table: str, row: Row) -> None:
        self.keyed[table, tuple(row[name] for name in self.keys[table])] = row

    def rows(self, table: str) -> list[Row]:
        return [row for (name, _), row in self.keyed.items() if name == table] + [
            row for name, row in self.inserted if name == table
        ]


class Reduction:
    """A left fold of events through the Talos reducers."""

    def __init__(self) -> None:
        self.state = DictState()
        self._offset = 0

    def apply(self, event: Event) -> Outcome:
        logged = LoggedEvent(event, Position(MEMORY.name, 0, self._offset), 0, 0, event.key)
        self._offset += 1
        reducer = reducers()[event.type]
        self.state.named = {
            (table, (event.namespace, *key) if self.state.keys[table][0] == "namespace" else key)
            for table, key in reducer.reads(logged)
        }
        outcome = reducer.apply(logged, Rows(self.state, logged, Indexed()))
        assert outcome is not None
        return outcome
