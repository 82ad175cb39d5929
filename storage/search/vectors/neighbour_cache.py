"""Cache of recent nearest-neighbour answers.

Rows are append-only, so a repeated query compares only the rows added since. The detector of tensions repeats what the
answer about a belief has asked a moment before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from storage.search.records.label_map import REMOVED

CACHED_QUERIES = 256
Key = tuple[bytes, int, float]
"""The bytes of the query, how many are wanted, the least cosine."""


class Neighbourhood(NamedTuple):
    """What is near to a query among the rows below `stop`: (n,) rows and their cosines, best first."""

    stop: int
    places: np.ndarray
    cosines: np.ndarray

    def joined(self, new: Neighbourhood, k: int) -> Neighbourhood:
        """The k nearest of these and of new rows; `new` may have some of these rows too."""
        since = new.places >= self.stop
        places = np.concatenate((self.places, new.places[since]))
        cosines = np.concatenate((self.cosines, new.cosines[since]))
        best = np.argsort(-cosines, kind="stable")[:k]
        return Neighbourhood(new.stop, places[best], cosines[best])


class NeighbourCache:
    """The answers to the last `CACHED_QUERIES` queries. Any number of threads."""

    def __init__(self) -> None:
        self._answers: dict[Key, Neighbourhood] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._answers)

    def get(self, key: Key, labels: np.ndarray) -> Neighbourhood | None:
        """The cached answer without rows that are gone; None where these would make room for others.

        `labels`: (rows,) int64, `REMOVED` for a row that is gone.
        """
        answer = self._answers.get(key)
        if answer is None:
            return None
        there = labels[answer.places] != REMOVED
        if there.all():
            return answer
        if len(answer.places) == key[1]:
            return None
        return Neighbourhood(answer.stop, answer.places[there], answer.cosines[there])

    def put(self, answers: Iterable[tuple[Key, Neighbourhood]]) -> None:
        """Keep these as the last ones."""
        with self._lock:
            for key, answer in answers:
                self._answers.pop(key, None)
                self._answers[key] = answer
            for oldest in list(self._answers)[:-CACHED_QUERIES]:
                del self._answers[oldest]
