"""Relations between records by label, in memory: what is one relation away from the best hits of the other sides."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Sequence

import duckdb
import numpy as np

from storage.search.grown import NOTHING, Mark, counts, new_rows
from streams.ids import document_label

_EDGES = ("relations", "namespace, from_id, to_id")
_MERGES = ("merges", "namespace, record_id, into_id")


class Relations:
    """Every relation in both directions, and which record stands for which. It follows the tables when it is told that
    they may have changed; any number of threads ask."""

    def __init__(self) -> None:
        self._following = threading.Lock()
        self._generation = -1
        self._clear()

    def _clear(self) -> None:
        self._edges: tuple[np.ndarray, np.ndarray] = np.empty(0, np.int64), np.empty(0, np.int64)
        """Sorted labels of one end, and those of the other, of one record the newest last. Replaced, never changed."""
        self._heads: dict[int, int] = {}
        self._members: dict[int, list[int]] = defaultdict(list)
        self._read: tuple[Mark, Mark] = NOTHING, NOTHING

    def follow(self, cursor: duckdb.DuckDBPyConnection, generation: int) -> None:
        """Take in what has come since another generation: less than a millisecond for a write, a second per 300,000 relations at first."""
        if generation == self._generation:
            return
        with self._following:
            if generation > self._generation and not self._grow(cursor):
                self._clear()
                if not self._grow(cursor):  # written between two looks: the next search looks again
                    return
            self._generation = max(generation, self._generation)

    def _grow(self, cursor: duckdb.DuckDBPyConnection) -> bool:
        count_edges, count_merges = counts(cursor, _EDGES[0], _MERGES[0])
        if (count_edges, count_merges) == (self._read[0].rows, self._read[1].rows):
            return True
        edges = new_rows(cursor, *_EDGES, self._read[0], count_edges)
        merges = new_rows(cursor, *_MERGES, self._read[1], count_merges)
        if edges is None or merges is None:
            return False
        if edges[0]:
            first = np.array([document_label(namespace, one) for namespace, one, _ in edges[0]], np.int64)
            second = np.array([document_label(namespace, other) for namespace, _, other in edges[0]], np.int64)
            self._edges = _inserted(*self._edges, np.concatenate([first, second]), np.concatenate([second, first]))
        for namespace, record, into in merges[0]:
            member, head = document_label(namespace, record), document_label(namespace, into)
            self._heads[member] = head
            self._members[head].append(member)
        self._read = edges[1], merges[1]
        return True

    def neighbours(self, parents: Sequence[int]) -> dict[int, int]:
        """label -> the place (0 = best) of its best parent among `parents`, best first, of one parent the newest relation first.

        Relations count in both directions; a merged record stands for the one that it was merged into.
        """
        ends, others = self._edges
        best: dict[int, int] = {}
        for place, parent in enumerate(parents):
            for label in (parent, *self._members.get(parent, ())):
                start, stop = np.searchsorted(ends, [label, label + 1]).tolist()
                for other in others[start:stop][::-1].tolist():
                    head = self._heads.get(other, other)
                    if head != parent:
                        best.setdefault(head, place)
        return best


def _inserted(ends: np.ndarray, others: np.ndarray, new_ends: np.ndarray, new_others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Behind what is there of the same label."""
    order = np.argsort(new_ends, kind="stable")
    places = np.searchsorted(ends, new_ends[order], side="right")
    return np.insert(ends, places, new_ends[order]), np.insert(others, places, new_others[order])
