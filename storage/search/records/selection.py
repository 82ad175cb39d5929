"""A selection of records with their places in the indexes.

A search over most of an index goes by place, not by label. Looking up 100,000 labels takes some five milliseconds. It
is done once: what comes later is looked up alone.
"""

from __future__ import annotations

import threading
from typing import Protocol
from weakref import WeakKeyDictionary

import numpy as np

from storage.search.records.label_map import ABSENT, places_in


class Numbered(Protocol):
    """An index whose entries have numbers from 0. A label keeps its number for as long as it is there."""

    def places(self, labels: np.ndarray) -> np.ndarray:
        """(n,) labels -> (n,) numbers, ABSENT for what is not there (yet)."""
        ...


class Selection:
    """(n,) labels, sorted, int64. Immutable but for its cache of places; any number of threads ask."""

    def __init__(self, labels: np.ndarray, places: WeakKeyDictionary[Numbered, np.ndarray] | None = None) -> None:
        self.labels = labels
        self._places = WeakKeyDictionary[Numbered, np.ndarray]() if places is None else places
        self._lock = threading.Lock()

    def numbers_in(self, index: Numbered) -> np.ndarray:
        """(n,) int32 numbers that the index has for them, ABSENT for those that are not in it yet."""
        with self._lock:
            known = self._places.get(index)
        places = np.full(len(self.labels), ABSENT, np.int32) if known is None else known
        missing = np.flatnonzero(places == ABSENT)
        if len(missing):
            places = places.copy()  # readers keep the former
            places[missing] = index.places(self.labels[missing])
            with self._lock:
                self._places[index] = places
        return places

    def find(self, labels: np.ndarray) -> np.ndarray:
        """Which of them these labels are, in their order; those that are none of them are left out."""
        found = places_in(self.labels, labels)
        return found[found != ABSENT]

    def joined(self, at: np.ndarray, labels: np.ndarray) -> Selection:
        """These, with (m,) new labels before those that stand at (m,) places now."""
        places = WeakKeyDictionary[Numbered, np.ndarray]()
        with self._lock:
            for index, known in self._places.items():
                places[index] = np.insert(known, at, np.full(len(labels), ABSENT, np.int32))
        return Selection(np.insert(self.labels, at, labels), places)
