"""A store filled row by row past every reducer, so that a test can put into it what no reducer would."""

from __future__ import annotations

from itertools import count
from typing import Any
from uuid import UUID

import duckdb

from streams.topics import MEMORY
from tests.schema import NOW, copy_into

EMPTY = {
    "VARCHAR": "",
    "JSON": "{}",
    "BOOLEAN": True,
    "TIMESTAMP": NOW,
    "DATE": NOW.date(),
    "BLOB": b"",
    "UUID": UUID(int=0),
}
"""What stands in a column that may not be null and of which the test says nothing; 0 in one of numbers."""


class Store:
    """The program's schema in memory, filled row by row past every reducer."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        copy_into(self.connection)
        self._offsets = count()

    def put(self, table: str, **values: Any) -> None:
        """A row with these values; what may not be null besides is empty."""
        known = self.connection.execute(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? AND NOT is_nullable", [table]
        ).fetchall()
        row = {name: [] if kind.endswith("[]") else EMPTY.get(kind, 0) for name, kind in known} | values
        names, marks = ", ".join(f'"{name}"' for name in row), ", ".join("?" * len(row))
        self.connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", list(row.values()))

    def event(self, event_id: str, topic: str = MEMORY.name, offset: int | None = None) -> None:
        """One that was applied."""
        number = next(self._offsets)
        place = number if offset is None else offset
        self.put("events", event_key=UUID(int=number + 1), event_id=event_id, topic=topic, offset=place)
