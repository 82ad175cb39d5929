"""A changed row comes from the event that changed it; an unknown column or table is never written."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import processors
from processors.frame import reducer as frame
from processors.frame.reducer import Outcome, Reducer, Rows
from storage.writer import Changes
from streams.events import LoggedEvent
from tests.processors.harness import Store, event, opened
from tests.properties.test_recorded_log import recorded_log, replayed
from tests.schema import tables

CLOSED = "talos.session.closed"
CALL = {"tool_call_id": "t", "tool_name": "Read"}
BEGUN_BY_THE_FIRST = {"telemetry_sessions", "tool_calls", "model_calls"}
"""Rows that several events make up; docs/tables.md: `event_id` is that of the event that made the row."""
ROW_CALLS = ("get", "shared", "insert", "put", "change", "complete", "remove_all")


def deciding(apply: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests to close a session are decided by this."""
    kind = event(CLOSED, {}).type
    found = {**frame.reducers(), kind: Reducer(apply)}
    monkeypatch.setattr("processors.frame.batch.reducers", lambda: found)


def test_a_row_that_was_read_and_changed_comes_from_the_event_that_changed_it() -> None:
    store = Store()
    store.publish(opened("2026-01-05-a", id="first"))
    store.publish(event(CLOSED, {"session_id": "2026-01-05-a"}, id="second"))
    assert store.sql('SELECT event_id, "offset", goal, status FROM talos_sessions') == [
        ("second", 1, "learn", "closed")
    ]


@pytest.mark.parametrize("size", [1, 1000])
def test_every_row_of_a_whole_log_names_the_event_that_lies_where_it_says(size: int) -> None:
    store = replayed(recorded_log(), size)
    compared = 0
    for name, table in tables().items():
        if "event_id" not in table.columns or name in BEGUN_BY_THE_FIRST:
            continue
        place = ("topic", "partition", '"offset"') + (("idx",) if "idx" in table.columns else ())
        same = " AND ".join(f"e.{column} = t.{column}" for column in place)
        [(rows, astray)] = store.sql(
            f"SELECT count(*), count(*) FILTER (NOT EXISTS (FROM events e WHERE {same} AND e.event_id = t.event_id)) "
            f"FROM {name} t" + (" WHERE false" if name == "duplicates" else "")
        )
        assert astray == 0, name
        compared += rows
    assert compared > 500
    store.database.close()


def test_a_row_that_several_events_make_up_names_the_first_and_lies_where_the_last_does() -> None:
    store = Store()
    for number, part in enumerate(({"tool_calls": [CALL]}, {"tool_results": [CALL]})):
        data = {"session_id": "s", "event_type": "user", **part}
        store.publish(event("session.event", data, id=f"line-{number}"), topic="thalweg.telemetry.v1")
    assert store.sql('SELECT event_id, "offset" FROM tool_calls') == [("line-0", 1)]


def test_a_reducer_that_writes_an_unknown_column_changes_nothing_and_its_event_is_kept_as_a_dead_letter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def misspell(logged: LoggedEvent, rows: Rows) -> Outcome:
        rows.put("talos_names", {"label": "Human", "name": "Ada", "node_id": "n", "created_at": None})
        session = rows.get("talos_sessions", "2026-01-05-a")
        assert session is not None
        rows.change("talos_sessions", session, stauts="closed")
        return Outcome()

    store = Store()
    store.publish(opened("2026-01-05-a"))
    before = store.sql("SELECT count(*) FROM talos_names")
    deciding(misspell, monkeypatch)
    store.publish(event(CLOSED, {"session_id": "2026-01-05-a"}, id="second"))
    [(message,)] = store.sql("SELECT error_message FROM dead_letters")
    assert message.startswith("The table talos_sessions has no column stauts; it has session_id, goal,")
    assert store.sql("SELECT status FROM talos_sessions") == [("open",)]
    assert store.sql("SELECT count(*) FROM talos_names") == before


@pytest.mark.parametrize("missing", [False, True])
def test_the_writer_takes_no_row_with_an_unknown_column_however_it_comes(missing: bool) -> None:
    store = Store()
    row = {"record_id": "r", "tag": "t", "namespace": "n", "topic": "m", "partition": 0, "offset": 0, "event_id": "e"}
    row["tags"] = row.pop("tag") if missing else "x"
    with pytest.raises(TypeError, match="The table document_tags has no column tags"):
        store.writer.commit(Changes(appended={"document_tags": [row]}))
    assert store.sql("SELECT count(*) FROM document_tags") == [(0,)]


def test_every_table_that_a_reducer_names_is_a_constant_and_there() -> None:
    named: set[str] = set()
    for module, argument in _table_arguments():
        assert isinstance(argument, ast.Name), f"{module.__name__}:{argument.lineno}: name the table by a constant"
        table = getattr(module, argument.id, None)
        if table is not None:  # else the variable of a loop over such constants
            assert table in tables(), f"{module.__name__}:{argument.lineno}: there is no table {table}"
            named.add(table)
    assert len(named) > 50


def _table_arguments() -> Iterator[tuple[ModuleType, ast.expr]]:
    """The table in each `rows.put(table, …)` and in each `yield table, key`."""
    root = Path(processors.__path__[0])
    for path in sorted(root.rglob("*.py")):
        if "rows: Rows" not in (text := path.read_text()):
            continue
        module = importlib.import_module(".".join(path.relative_to(root.parent).with_suffix("").parts))
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Call(ast.Attribute(ast.Name("rows"), name), [table, *_]) if name in ROW_CALLS:
                    yield module, table
                case ast.Yield(ast.Tuple([table, _])):
                    yield module, table
