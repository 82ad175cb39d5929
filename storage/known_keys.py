"""Which primary keys may exist: a Bloom filter over every keyed table, so that a new event costs no look-ups.

Nearly every key that a reducer asks for is new, and asking DuckDB for a row that is not there takes half a
millisecond. The filter says "surely not" without asking; it never says so of a key that is there. Filled from the
tables at start (a million keys in about a second), kept up to date by the only writer. docs/adr/0006 has the numbers.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Iterable
from typing import Any

import duckdb
import numpy as np

from storage.tables import Table

BITS_PER_KEY = 16
MIN_BITS = 1 << 23
PROBES = 4
FETCH_ROWS = 100_000
REMEMBERED = 20_000
Places = tuple[int, int, int, int]
_HALVES = struct.Struct("<QQ")
_md5 = functools.partial(hashlib.md5, usedforsecurity=False)


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
        bits = np.zeros(self._size // 8, np.uint8)
        self._asked: dict[tuple[str, tuple[Any, ...]], Places] = {}
        self._count = 0
        for table in self._tables:
            if counts[table.name]:  # in a young store most are empty, and each query costs a millisecond
                self._fill_from(table, bits)
        self._bytes = memoryview(bits)  # type: ignore[arg-type]  # a single byte of an array is read and set faster through it

    def _fill_from(self, table: Table, bits: np.ndarray) -> None:
        key = "concat_ws(chr(31), " + ", ".join([f"'{table.name}'", *(f'"{name}"::VARCHAR' for name in table.key)]) + ")"
        result = self._cursor.execute(f"SELECT md5_number_lower({key}), md5_number_upper({key}) FROM {table.name}")
        while rows := result.fetchmany(FETCH_ROWS):
            low, high = np.array(rows, np.uint64).T
            for probe in range(PROBES):
                at = (low + np.uint64(probe) * high) & np.uint64(self._size - 1)
                np.bitwise_or.at(bits, at >> np.uint64(3), (1 << (at & np.uint64(7))).astype(np.uint8))
            self._count += len(rows)

    @staticmethod
    def _places(table: str, key: tuple[Any, ...], bits: int) -> Places:
        high, low = _HALVES.unpack(_md5("\x1f".join((table, *map(str, key))).encode()).digest())
        mask = bits - 1
        return low & mask, (low + high) & mask, (low + 2 * high) & mask, (low + 3 * high) & mask  # PROBES, written out: it is asked most

    def may_hold(self, table: str, key: tuple[Any, ...]) -> bool:
        """False: there is surely no such row."""
        held = self._bytes
        places = self._places(table, key, self._size)
        for place in places:
            if not held[place >> 3] & (1 << (place & 7)):
                if len(self._asked) >= REMEMBERED:
                    self._asked.clear()
                self._asked[table, key] = places  # what is not there is likely to be added next
                return False
        return True

    def may_hold_now(self, table: str, key: tuple[Any, ...]) -> bool:
        """As `may_hold`, for other threads than the writer's: of what is committed so far, and nothing is remembered of the question."""
        held = self._bytes  # replaced when it is filled anew, never emptied
        return all(held[place >> 3] & (1 << (place & 7)) for place in self._places(table, key, 8 * len(held)))

    def add(self, table: str, keys: Iterable[tuple[Any, ...]]) -> None:
        """Rows that were committed."""
        for key in keys:
            self._count += 1
            for place in self._asked.pop((table, key), None) or self._places(table, key, self._size):
                self._bytes[place >> 3] |= 1 << (place & 7)
        if self._count * BITS_PER_KEY > self._size:
            self._fill()
