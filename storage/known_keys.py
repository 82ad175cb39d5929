"""Which primary keys may exist: a Bloom filter over every keyed table, so that a new event costs no look-ups.

Nearly every key that a reducer asks for is new, and asking DuckDB for a row that is not there takes half a
millisecond. The filter says "surely not" without asking; it never says so of a key that is there. Filled from the
tables at start (a million keys in about a second), kept up to date by the only writer. docs/adr/0006 has the numbers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np

from storage.tables import Table

BITS_PER_KEY = 16
MIN_BITS = 1 << 23
PROBES = 4
FETCH_ROWS = 100_000


class KnownKeys:
    """`may_hold` is True for every key that was added or stored, and for about one in five hundred others."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, tables: Iterable[Table]) -> None:
        self._cursor = cursor
        self._tables = [table for table in tables if table.key]
        self._fill()

    def _fill(self) -> None:
        counting = " UNION ALL ".join(f"SELECT '{table.name}', count(*) FROM {table.name}" for table in self._tables)
        counts: dict[str, int] = dict(self._cursor.execute(counting).fetchall())
        wanted = 2 * sum(counts.values()) * BITS_PER_KEY
        self._size = max(MIN_BITS, 1 << wanted.bit_length())
        self._bits = np.zeros(self._size // 8, np.uint8)
        self._count = 0
        for table in self._tables:
            if counts[table.name]:  # in a young store most are empty, and each query costs a millisecond
                self._fill_from(table)

    def _fill_from(self, table: Table) -> None:
        key = "concat_ws(chr(31), " + ", ".join([f"'{table.name}'", *(f'"{name}"::VARCHAR' for name in table.key)]) + ")"
        result = self._cursor.execute(f"SELECT md5_number_lower({key}), md5_number_upper({key}) FROM {table.name}")
        while rows := result.fetchmany(FETCH_ROWS):
            low, high = np.array(rows, np.uint64).T
            for probe in range(PROBES):
                at = (low + np.uint64(probe) * high) & np.uint64(self._size - 1)
                np.bitwise_or.at(self._bits, at >> np.uint64(3), (1 << (at & np.uint64(7))).astype(np.uint8))
            self._count += len(rows)

    def _places(self, table: str, key: tuple[Any, ...]) -> list[int]:
        digest = hashlib.md5("\x1f".join((table, *map(str, key))).encode(), usedforsecurity=False).digest()
        low, high = int.from_bytes(digest[8:], "little"), int.from_bytes(digest[:8], "little")
        mask = self._size - 1
        return [(low + probe * high) & mask for probe in range(PROBES)]

    def may_hold(self, table: str, key: tuple[Any, ...]) -> bool:
        """False: there is surely no such row."""
        bits = self._bits
        return all(bits[place >> 3] & (1 << (place & 7)) for place in self._places(table, key))

    def add(self, table: str, keys: Iterable[tuple[Any, ...]]) -> None:
        """Rows that were committed."""
        for key in keys:
            self._count += 1
            for place in self._places(table, key):
                self._bits[place >> 3] |= 1 << (place & 7)
        if self._count * BITS_PER_KEY > self._size:
            self._fill()
