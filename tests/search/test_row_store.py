"""Rows of `documents` in a file: what came, was read or was there at the start is not read from the table again."""

from __future__ import annotations

import copy
import os
from datetime import datetime
from pathlib import Path

import pytest

from storage.search.index_set import IndexSet
from storage.search.records import row_store
from storage.search.records.row_store import DOCUMENTS, DocumentRow, RowStore
from tests.search.store import MODEL, Store

ROW = DocumentRow("one", "Insight", "talos", None, None, "The river bends", datetime(2026, 1, 5), "e", "a")


def test_a_row_that_came_is_not_read_from_the_table_until_it_is_removed(tmp_path: Path) -> None:
    store = Store()
    indexes = IndexSet(tmp_path / "indexes", store.connection.cursor, MODEL)
    indexes.open(store.positions)
    label, records = store.write("one", "The river bends"), indexes.records
    cursor = store.connection.cursor()
    assert records.documents.hits(cursor, "a", [label])[label].text == "The river bends"
    cursor.execute("DELETE FROM documents")
    assert records.documents.hits(cursor, "a", [label])[label].record_id == "one"
    indexes.remove([label])
    assert records.documents.hits(cursor, "a", [label]) == {}
    indexes.close()


def test_what_there_was_at_the_start_is_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_store, "LOADED_ROWS", 2)
    store = Store()
    labels = [store.write(name, name) for name in "abc"]
    indexes, cursor = store.open(tmp_path / "indexes"), store.connection.cursor()
    cursor.execute("DELETE FROM documents")
    assert indexes.records.documents.names(cursor, labels) == [("Insight", name) for name in "abc"]
    indexes.close()


@pytest.mark.parametrize(
    "text", ["", "\0", 'a "quoted" \\ line\nand the next', "Å\U0001f30a 東京 \u2028 \x1f", "x" * 3_000_000]
)
@pytest.mark.parametrize("at", [datetime(1969, 12, 31, 23, 59, 59, 1), datetime(2026, 1, 5, 0, 0, 0, 999_999)])
def test_the_table_and_a_commit_give_one_row(text: str, at: datetime) -> None:
    store = Store()
    label = store.write("one", "The river bends")
    cursor = store.connection.cursor()
    cursor.execute("UPDATE documents SET text = ?, created_at = ?", [text, at])
    loaded, read = RowStore(DOCUMENTS), RowStore(DOCUMENTS)
    loaded.load(cursor)
    row = read.read(cursor, [label])[label]
    assert (row.text, row.created_at) == (text, at)
    cursor.execute("DELETE FROM documents")
    assert loaded.read(cursor, [label]) == read.read(cursor, [label]) == {label: row}


def test_a_row_that_is_longer_than_a_place_can_tell_is_read_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_store, "_MAX_LENGTH", 100)
    store = Store()
    label = store.write("one", "bend " * 100)
    cursor, rows = store.connection.cursor(), RowStore(DOCUMENTS)
    rows.load(cursor)
    assert rows.read(cursor, [label])[label].text == "bend " * 100
    cursor.execute("DELETE FROM documents")
    assert rows.read(cursor, [label]) == {}


def test_on_a_full_disk_rows_are_read_from_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    label = store.write("one", "The river bends")
    cursor, rows = store.connection.cursor(), RowStore(DOCUMENTS)

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(row_store, "write_all", full)
    rows.load(cursor)
    assert rows.read(cursor, [label])[label].text == "The river bends"
    monkeypatch.undo()
    assert rows.read(cursor, [label])[label].text == "The river bends"
    cursor.execute("DELETE FROM documents")
    assert rows.read(cursor, [label])[label].text == "The river bends"


def test_nothing_of_a_removed_row_is_left_in_the_file() -> None:
    rows, cursor = RowStore(DOCUMENTS), Store().connection.cursor()
    rows.keep({7: ROW, 8: ROW._replace(text="It floods in May")})
    rows.remove([7, 9])
    assert rows.read(cursor, [7, 8]).keys() == {8}
    body = os.pread(rows._file.fileno(), 10_000, 0)
    assert b"It floods in May" in body and b"river" not in body


def test_a_row_that_is_removed_while_it_is_read_is_not_there() -> None:
    rows, cursor = RowStore(DOCUMENTS), Store().connection.cursor()
    rows.keep({7: ROW})
    looked_up = copy.copy(rows._places)
    rows.remove([7])
    rows._places = looked_up
    assert rows.read(cursor, [7]) == {}
