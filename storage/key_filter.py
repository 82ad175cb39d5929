"""A Bloom filter over the primary keys of every table, so that a new event costs no look-ups.

Nearly every key that a reducer reads is new, and a query for a row that does not exist takes half a millisecond. The
filter says "surely not" without a query, and never says so of a stored key. It is filled from the tables at start (a
million keys in about a second) and kept up to date by the only writer. docs/adr/0006 has the numbers.
"""

from __future__ import annotations

import functools
import hashlib
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import numpy as np

from storage.tables import Table

BITS_PER_KEY = 16
MIN_BITS = 1 << 23
PROBES = 4
FETCH_ROWS = 100_000
MAX_CACHED_DIGESTS = 20_000
NUMPY_FROM = 16
"""From this many keys on NumPy is faster than a loop."""
_HALVES = struct.Struct("<QQ")
_md5 = functools.partial(hashlib.md5, usedforsecurity=False)


class KeyFilter:
    """A filter that passes every key that was added or stored, and about one in five hundred others."""

    def __init__(self, cursor: duckdb.DuckDBPyConnection, tables: Iterable[Table]) -> None:
        self._cursor = cursor
        self._tables = [table for table in tables if table.key]
        self._fill()

    def _fill(self) -> None:
        counting = "SELECT table_name, estimated_size FROM duckdb_tables() WHERE schema_name = 'main'"
        counts: dict[str, int] = dict(self._cursor.execute(counting).fetchall())  # deleted rows count as well
        wanted = 2 * sum(counts[table.name] for table in self._tables) * BITS_PER_KEY
        self._size = max(MIN_BITS, 1 << wanted.bit_length())
        bits = np.zeros(self._size // 8, np.uint8)
        self._digests: dict[tuple[str, tuple[Any, ...]], bytes] = {}
        self._count = 0
        for table in self._tables:
            if counts[table.name]:  # in a young store most tables are empty, and each query costs a millisecond
                self._fill_from(table, bits)
        self._bits = bits
        self._bytes = memoryview(bits)  # type: ignore[arg-type]  # single bytes are faster through it

    def _fill_from(self, table: Table, bits: np.ndarray) -> None:
        key = (
            "concat_ws(chr(31), " + ", ".join([f"'{table.name}'", *(f'"{name}"::VARCHAR' for name in table.key)]) + ")"
        )
        result = self._cursor.execute(f"SELECT md5_number_lower({key}), md5_number_upper({key}) FROM {table.name}")
        while rows := result.fetchmany(FETCH_ROWS):
            low, high = np.array(rows, np.uint64).T
            _set(bits, _many_places(low, high, self._size))
            self._count += len(rows)

    def candidates(self, table: str, keys: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
        """Those of the keys that may be stored; the others surely are not."""
        digests = [_digest(table, key) for key in keys]
        if len(keys) < NUMPY_FROM:
            there = [_all_set(self._bytes, _places(digest, self._size)) for digest in digests]
        else:
            there = _all_set_each(self._bits, _many_places(*_halves(digests), self._size)).tolist()
        if len(self._digests) >= MAX_CACHED_DIGESTS:
            self._digests.clear()
        # a missing key is likely to be added next
        self._digests.update(
            ((table, key), digest) for key, digest, stored in zip(keys, digests, there, strict=True) if not stored
        )
        return [key for key, stored in zip(keys, there, strict=True) if stored]

    def may_contain(self, table: str, key: tuple[Any, ...]) -> bool:
        """Whether such a row may be committed; False is certain. For threads other than the writer's."""
        bits = self._bytes  # replaced when the filter is filled anew, never emptied
        return _all_set(bits, _places(_digest(table, key), 8 * len(bits)))

    def add(self, table: str, keys: Sequence[tuple[Any, ...]]) -> None:
        """Add the keys of committed rows."""
        digests = [self._digests.pop((table, key), b"") or _digest(table, key) for key in keys]
        if len(keys) < NUMPY_FROM:
            for digest in digests:
                for place in _places(digest, self._size):
                    self._bytes[place >> 3] |= 1 << (place & 7)
        else:
            _set(self._bits, _many_places(*_halves(digests), self._size))
        self._count += len(keys)
        if self._count * BITS_PER_KEY > self._size:
            self._fill()


def _digest(table: str, key: tuple[Any, ...]) -> bytes:
    return _md5("\x1f".join((table, *map(str, key))).encode()).digest()


def _places(digest: bytes, bits: int) -> tuple[int, int, int, int]:
    high, low = _HALVES.unpack(digest)
    mask = bits - 1
    # PROBES places, written out: this is the hottest function
    return (
        low & mask,
        (low + high) & mask,
        (low + 2 * high) & mask,
        (low + 3 * high) & mask,
    )


def _all_set(bits: memoryview, places: tuple[int, int, int, int]) -> bool:
    return all(bits[place >> 3] & (1 << (place & 7)) for place in places)


# --- the same for many keys at once


def _halves(digests: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """(n,) low and high halves of the digests."""
    high, low = np.frombuffer(b"".join(digests), "<u8").reshape(-1, 2).T
    return low, high


def _many_places(low: np.ndarray, high: np.ndarray, bits: int) -> np.ndarray:
    """(n, PROBES) places of n digests."""
    places: np.ndarray = low[:, None] + np.arange(PROBES, dtype=np.uint64) * high[:, None]
    return places & np.uint64(bits - 1)


def _bits_of(places: np.ndarray) -> np.ndarray:
    bits: np.ndarray = np.left_shift(1, places & np.uint64(7), dtype=np.uint64)
    return bits.astype(np.uint8)


def _all_set_each(bits: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(n,) whether all bits of each digest are set."""
    there: np.ndarray = (bits[places >> np.uint64(3)] & _bits_of(places)).all(axis=1)
    return there


def _set(bits: np.ndarray, places: np.ndarray) -> None:
    np.bitwise_or.at(bits, places >> np.uint64(3), _bits_of(places))
