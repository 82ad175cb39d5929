"""The filter of known keys: it never hides a row, and asked of many keys it says what it says of each alone."""

from __future__ import annotations

from storage.key_filter import MANY, KeyFilter
from storage.tables import read_tables
from streams.ids import event_key
from tests.schema import fresh_database

KEYS = [(event_key("default", "test", str(number)),) for number in range(4 * MANY)]


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
    cursor.executemany(
        "INSERT INTO events VALUES (?, 'e', 'test', 'thalweg.session.event.v1', NULL, now(), 0, NULL, 'default', 'thalweg.telemetry.v1', 0, 0, 0)",
        [list(key) for key in half],
    )
    for known in (together, alone, KeyFilter(cursor, tables)):
        assert known.candidates("events", KEYS) == half
        assert [key for key in KEYS if known.candidates("events", [key])] == half
        assert [key for key in KEYS if known.may_contain("events", key)] == half
    database.close()
