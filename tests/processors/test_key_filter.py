"""The filter of known keys: it never hides a row, and asked of many keys it says what it says of each alone."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pytest

from storage.key_filter import BITS_PER_KEY, NUMPY_FROM, KeyFilter
from storage.tables import read_tables
from streams.ids import event_key
from tests.schema import fresh_database

KEYS = [(event_key("default", "test", str(number)),) for number in range(4 * NUMPY_FROM)]


def store(cursor: duckdb.DuckDBPyConnection, keys: Sequence[tuple[object, ...]]) -> None:
    """Rows with these keys, as the writer has them in the table when it adds them."""
    cursor.executemany(
        "INSERT INTO events VALUES (?, 'e', 'test', 'thalweg.session.event.v1', NULL, now(), 0, NULL, 'default', "
        "'thalweg.telemetry.v1', 0, 0, 0)",
        [list(key) for key in keys],
    )


def test_a_filter_that_fills_up_grows_and_still_tells_new_keys_from_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("storage.key_filter.MIN_BITS", 64 * BITS_PER_KEY)
    database = fresh_database()
    cursor = database.cursor()
    known = KeyFilter(cursor, read_tables(cursor).values())
    keys = [(event_key("default", "test", str(number)),) for number in range(2000)]
    stored, new = keys[:1000], keys[1000:]
    for start in range(0, len(stored), NUMPY_FROM):
        batch = stored[start : start + NUMPY_FROM]
        store(cursor, batch)
        known.add("events", batch)
    assert known.candidates("events", stored) == stored
    assert len(known.candidates("events", new)) < len(new) / 20
    database.close()


def test_many_keys_at_once_are_added_and_found_as_each_alone_and_as_the_store_has_them() -> None:
    database = fresh_database()
    cursor = database.cursor()
    tables = read_tables(cursor).values()
    together, alone = KeyFilter(cursor, tables), KeyFilter(cursor, tables)
    assert together.candidates("events", KEYS) == []
    half = KEYS[::2]
    together.add("events", half)
    for key in half:
        alone.add("events", [key])
    store(cursor, half)
    for known in (together, alone, KeyFilter(cursor, tables)):
        assert known.candidates("events", KEYS) == half
        assert [key for key in KEYS if known.candidates("events", [key])] == half
        assert [key for key in KEYS if known.may_contain("events", key)] == half
    database.close()
