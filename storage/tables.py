"""What the schema says about its tables: columns, types and primary keys, read from DuckDB itself."""

from __future__ import annotations

import base64
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import Any

import duckdb
import orjson

from storage.statements import marks
from storage.vector_codec import stored_vector

ORIGIN = ("namespace", "topic", "partition", "offset", "idx", "event_id")
"""Where a row comes from: the event that decided it, and its place on the log. Few tables have an `idx`."""
_NESTED = ("STRUCT", "MAP", "UNION", "VARIANT")


@dataclass(frozen=True)
class Table:
    """A base table. `key` is its primary key, empty for tables that are only appended to."""

    name: str
    columns: dict[str, str]
    key: tuple[str, ...]

    @cached_property
    def json_columns(self) -> tuple[str, ...]:
        return tuple(name for name, kind in self.columns.items() if kind == "JSON")

    @cached_property
    def uuid_columns(self) -> tuple[str, ...]:
        """Keys of events; as text they are what the rows of reducers hold."""
        return tuple(name for name, kind in self.columns.items() if kind == "UUID")

    @cached_property
    def _absent_origin(self) -> tuple[str, ...]:
        return tuple(name for name in ORIGIN if name not in self.columns)

    def with_origin(self, values: Mapping[str, Any], origin: Mapping[str, Any]) -> dict[str, Any]:
        """A row of these values that comes from `origin`, not from where they came. Raises TypeError as `check`.

        `origin` has a value for each name of ORIGIN; the table takes those that it has a column for.
        """
        row = {**values, **origin}
        for name in self._absent_origin:
            del row[name]
        self.check(row)
        return row

    def check(self, row: Mapping[str, Any]) -> None:
        """Raises TypeError for a row with a column that the table does not have."""
        names = tuple(row)
        if names in self._shapes:
            return
        if not row.keys() <= self.columns.keys():
            unknown = ", ".join(sorted(row.keys() - self.columns.keys()))
            raise TypeError(f"The table {self.name} has no column {unknown}; it has {', '.join(self.columns)}.")
        self._shapes.add(names)

    @cached_property
    def _shapes(self) -> set[tuple[str, ...]]:
        """Names of columns, in order, that rows came with and that fit: a reducer makes rows of few shapes."""
        return set()

    @cached_property
    def key_of(self) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
        """The values of a row's primary key."""
        if len(self.key) == 1:
            (name,) = self.key
            return lambda row: (row[name],)
        return itemgetter(*self.key) if self.key else lambda row: ()

    def insert(self, *, replace: bool = False) -> str:
        """An INSERT of rows in one parameter, a JSON array (see `as_json`). A value that misfits its column fails."""
        as_text = ("JSON", "BLOB")
        structure = orjson.dumps(
            [{name: "VARCHAR" if kind in as_text else kind for name, kind in self.columns.items()}]
        ).decode()
        rows = f"SELECT unnest(from_json_strict($1::VARCHAR, '{structure}')) AS r"
        values = ", ".join(
            f'from_base64(r."{name}")' if kind == "BLOB" else f'r."{name}"' for name, kind in self.columns.items()
        )
        return f"INSERT {'OR REPLACE ' if replace else ''}INTO {self.name} SELECT {values} FROM ({rows})"

    def as_json(self, rows: Iterable[Mapping[str, Any]]) -> str:
        """Rows as `insert` takes them; what a row does not name is NULL."""
        named = [dict(zip(self.columns, self.parameters(row), strict=True)) for row in rows]
        return orjson.dumps(named, default=_plain).decode()

    @cached_property
    def update(self) -> str | None:
        """An UPDATE of one row by its primary key, with `changed` as parameters.

        It takes a third of INSERT OR REPLACE's time. None for a table with nested values: DuckDB updates those by
        deleting and inserting, which its keys refuse.
        """
        if not self.key or any(kind.endswith("]") or kind.startswith(_NESTED) for kind in self.columns.values()):
            return None
        values = ", ".join(f'"{name}" = ?' for name in self._values)
        return f"UPDATE {self.name} SET {values} WHERE " + " AND ".join(f'"{name}" = ?' for name in self.key)

    def changed(self, row: Mapping[str, Any]) -> list[Any]:
        """A row in the order of `update`."""
        values = dict(zip(self.columns, self.parameters(row), strict=True))
        return [values[name] for name in (*self._values, *self.key)]

    @cached_property
    def _values(self) -> list[str]:
        return [name for name in self.columns if name not in self.key]

    def parameters(self, row: Mapping[str, Any]) -> list[Any]:
        """A row in the order of the columns; what it does not name is NULL. Raises TypeError as `check`."""
        try:
            values = list(self._whole_row(row))
        except KeyError:
            values = list(map(row.get, self.columns))
            self.check(row)
        if len(row) > len(values):
            self.check(row)
        for place in self._json_places:
            if values[place] is not None:
                values[place] = orjson.dumps(values[place]).decode()
        for place in self._vector_places:
            if (vector := values[place]) is not None:
                values[place] = stored_vector(vector)
        return values

    @cached_property
    def _whole_row(self) -> Callable[[Mapping[str, Any]], tuple[Any, ...]]:
        """All columns of a row that names all of them, as nearly every row does, in a third of the time."""
        return itemgetter(*self.columns)

    @cached_property
    def _json_places(self) -> tuple[int, ...]:
        return tuple(place for place, kind in enumerate(self.columns.values()) if kind == "JSON")

    @cached_property
    def _vector_places(self) -> tuple[int, ...]:
        """The columns of bytes hold vectors: nothing else is kept as bytes."""
        return tuple(place for place, kind in enumerate(self.columns.values()) if kind == "BLOB")

    @property
    def has_vectors(self) -> bool:
        """Whether a row may have a vector, of some kilobytes."""
        return bool(self._vector_places)

    @cached_property
    def is_labelled(self) -> bool:
        """Whether a row is found by the label of its record, which has an index of its own.

        DuckDB looks up single columns only: by a key of two it reads every row, 5 ms of 100,000.
        """
        return len(self.key) == 2 and self.key[0] == "namespace" and self.columns.get("label") == "BIGINT"

    def find_labelled(self, labels: Collection[int]) -> str:
        """A query for the rows with these labels."""
        return f"SELECT * FROM {self.name} WHERE label IN ({marks(labels)})"

    @cached_property
    def find_one(self) -> str:
        return f"SELECT * FROM {self.name} WHERE " + " AND ".join(f'"{name}" = ?' for name in self.key)

    @cached_property
    def find(self) -> str:
        """Rows by primary key; the parameter is a JSON array of objects with the key columns."""
        structure = orjson.dumps([{name: self.columns[name] for name in self.key}]).decode()
        on = " AND ".join(f't."{name}" = k."{name}"' for name in self.key)
        keys = f"SELECT unnest(from_json(?, '{structure}'), recursive := true)"
        return f"SELECT t.* FROM {self.name} t JOIN ({keys}) k ON {on}"


def _plain(value: bytes) -> str:
    """A vector's bytes as JSON can hold them."""
    return base64.b64encode(value).decode()


def read_tables(cursor: duckdb.DuckDBPyConnection) -> dict[str, Table]:
    """Every base table of the open database, by name."""
    columns: dict[str, dict[str, str]] = {}
    for table, column, kind in cursor.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE NOT internal AND schema_name = 'main' AND table_name IN (SELECT table_name FROM duckdb_tables()) "
        "ORDER BY table_name, column_index"
    ).fetchall():
        columns.setdefault(table, {})[column] = kind
    keys = dict(
        cursor.execute(
            "SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'"
        ).fetchall()
    )
    return {name: Table(name, found, tuple(keys.get(name, ()))) for name, found in columns.items()}
