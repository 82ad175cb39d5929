"""Rows of numbers in a nameless file, read a few at a time: page cache, not memory of the process."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np


class RowFile:
    """(n, dim) float32 rows by number, gone with the process: the table has them. One thread writes, others read."""

    def __init__(self, dim: int, directory: Path | None = None) -> None:
        """`directory`: on which disk; by default the system's place for temporary files."""
        if directory is not None:
            directory.mkdir(parents=True, exist_ok=True)
        self._dim = dim
        self._file = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 (open as long as the index)

    def put(self, places: np.ndarray, rows: np.ndarray) -> None:
        """Write (n, dim) rows under their (n,) different numbers. An OSError (disk full) passes through."""
        if not len(places):
            return
        order = np.argsort(places, kind="stable")
        places, rows = places[order], np.ascontiguousarray(rows[order], np.float32)
        breaks = [0, *(np.flatnonzero(np.diff(places) != 1) + 1).tolist(), len(places)]
        for start, stop in pairwise(breaks):
            write_all(self._file.fileno(), rows[start:stop].tobytes(), int(places[start]) * self._dim * 4)

    def read(self, places: np.ndarray) -> np.ndarray:
        """(n, dim) rows with these numbers, read one by one: a map of the file brings its pages more slowly."""
        file, size = self._file.fileno(), self._dim * 4
        rows = b"".join([os.pread(file, size, at) for at in (places.astype(np.int64) * size).tolist()])
        return np.frombuffer(rows, np.float32).reshape(-1, self._dim)


def write_all(descriptor: int, body: bytes, at: int) -> None:
    """All of it: a write to a disk that is nearly full may be cut short before it fails."""
    with memoryview(body) as rest:
        done = 0
        while done < len(rest):
            done += os.pwrite(descriptor, rest[done:], at + done)
