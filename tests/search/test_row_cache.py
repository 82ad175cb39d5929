"""Rows of `documents` in memory: what came or was read is not read again, and no more is kept than allowed."""

from __future__ import annotations

from pathlib import Path

import pytest

from storage.search.index_set import IndexSet
from storage.search.records import row_cache
from storage.search.records.row_cache import RowCache
from tests.search.store import MODEL, Store


def test_a_row_that_was_read_is_not_read_again_until_rows_have_gone(tmp_path: Path) -> None:
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


def test_what_there_was_at_the_start_is_known_but_for_long_texts(tmp_path: Path) -> None:
    store = Store()
    short, long = store.write("one", "The river bends"), store.write("two", "bend " * row_cache.LOADED_CHARACTERS)
    indexes, cursor = store.open(tmp_path / "indexes"), store.connection.cursor()
    cursor.execute("DELETE FROM documents")
    assert indexes.records.documents.hits(cursor, "a", [short, long]).keys() == {short}
    assert indexes.records.documents.names(cursor, [long, short]) == [("Insight", "one")]
    indexes.close()


def test_the_rows_that_were_not_asked_for_longest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MAX_ROWS", 2)
    store = Store()
    labels = [store.write(name, name) for name in "abc"]
    cursor, cache = store.connection.cursor(), RowCache("text")
    for label in (labels[0], labels[1], labels[0], labels[2]):
        cache.read(cursor, [label])
    cursor.execute("DELETE FROM documents")
    assert cache.read(cursor, labels) == {labels[0]: ("a",), labels[2]: ("c",)}


def test_long_texts_make_room_by_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MAX_CHARACTERS", 100)
    store = Store()
    labels = [store.write(name, name * 60) for name in "ab"]
    cursor, cache = store.connection.cursor(), RowCache("text")
    assert cache.read(cursor, labels).keys() == set(labels)
    cursor.execute("DELETE FROM documents")
    assert cache.read(cursor, labels) == {labels[1]: ("b" * 60,)}
