"""The vectors that dreams made of memories' surroundings, in memory, as 8-bit rows.

A search compares its query with those of its candidates: to ask DuckDB for some hundred vectors takes 10 ms.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from storage.followers import Follower
from storage.search.records.label_map import ABSENT, places_in
from storage.search.vectors.exact_scan import products, quantise_rows
from storage.statements import execute
from storage.vector_codec import read_vectors

FETCH_ROWS = 1_024
"""Vectors that are made 8-bit rows before other threads get their turn."""


@dataclass(frozen=True, slots=True)
class SurroundingVectors:
    """Those of a namespace in one space: (n,) sorted labels, (n, dim) int8 codes and (n,) scales."""

    labels: np.ndarray
    codes: np.ndarray
    scales: np.ndarray

    def similarities(self, vector: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) cosines of a (dim,) vector, NaN where there is none."""
        found = np.full(len(labels), np.nan)
        places = places_in(self.labels, labels)
        is_there = places != ABSENT
        if is_there.any() and len(vector) == self.codes.shape[1]:
            there = places[is_there]
            found[is_there] = products(self.codes[there], self.scales[there], np.asarray(vector, np.float32))
        return found


Spaces = Mapping[str, SurroundingVectors]
"""By the name of the space."""


class SurroundingsFollower(Follower[Spaces]):
    """Those of each namespace that was asked for."""

    table = "context_surroundings"
    columns = "label, space, vector"

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Spaces:
        view: Spaces = {}
        result = execute(cursor, f"SELECT {self.columns} FROM {self.table} WHERE namespace = ?", [namespace])
        parts: dict[str, list[SurroundingVectors]] = {}
        while rows := result.fetchmany(FETCH_ROWS):
            for space, part in _quantised(rows).items():
                parts.setdefault(space, []).append(part)
            time.sleep(0)  # searches wait for the interpreter
        for space, some in parts.items():
            view = {**view, space: _joined(some)}
        return view

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: Spaces, rows: Sequence[tuple[Any, ...]]
    ) -> Spaces:
        made = _quantised(rows)
        return {**view, **{space: _joined([*([view[space]] if space in view else []), made[space]]) for space in made}}


def _quantised(rows: Sequence[tuple[int, str, bytes]]) -> dict[str, SurroundingVectors]:
    """(label, space, stored vector) of each -> by space their rows, in any order."""
    by_space: dict[str, list[tuple[int, bytes]]] = {}
    for label, space, vector in rows:
        by_space.setdefault(space, []).append((label, vector))
    return {
        space: SurroundingVectors(
            np.array([label for label, _ in some], np.int64), *quantise_rows(read_vectors([one for _, one in some]))
        )
        for space, some in by_space.items()
    }


def _joined(parts: Sequence[SurroundingVectors]) -> SurroundingVectors:
    """All rows, sorted by label, each label once."""
    labels = np.concatenate([part.labels for part in parts])
    labels, places = np.unique(labels, return_index=True)
    codes = np.concatenate([part.codes for part in parts])[places]
    return SurroundingVectors(labels, codes, np.concatenate([part.scales for part in parts])[places])
