"""What was looked for lately and what was found: rows never change, so that who looks again needs to compare the new ones only.

The tension detector looks for what the answer about a belief has looked for a moment before.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from storage.search.records.label_map import REMOVED

KEPT = 256
Question = tuple[bytes, int, float]
"""The bytes of the query, how many are asked for, the least cosine."""


class Looked(NamedTuple):
    """What is near to a query among the rows below `stop`: (n,) rows and their cosines, best first."""

    stop: int
    places: np.ndarray
    cosines: np.ndarray

    def joined(self, new: Looked, k: int) -> Looked:
        """With what was found among the rows since; `new` may have been looked for among some of these rows too."""
        since = new.places >= self.stop
        places, cosines = (
            np.concatenate((self.places, new.places[since])),
            np.concatenate((self.cosines, new.cosines[since])),
        )
        best = np.argsort(-cosines, kind="stable")[:k]
        return Looked(new.stop, places[best], cosines[best])


class LookedFor:
    """The last `KEPT` questions with what was found. Any number of threads."""

    def __init__(self) -> None:
        self._found: dict[Question, Looked] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._found)

    def get(self, question: Question, labels: np.ndarray) -> Looked | None:
        """What was found, of what is there still; None when nobody asked, or when more would have been found in place of what is gone.

        `labels`: (rows,) int64, `REMOVED` for a row that is gone.
        """
        looked = self._found.get(question)
        if looked is None:
            return None
        there = labels[looked.places] != REMOVED
        if there.all():
            return looked
        return (
            None
            if len(looked.places) == question[1]
            else Looked(looked.stop, looked.places[there], looked.cosines[there])
        )

    def keep(self, found: Iterable[tuple[Question, Looked]]) -> None:
        """Remember these as the last."""
        with self._lock:
            for question, looked in found:
                self._found.pop(question, None)
                self._found[question] = looked
            for oldest in list(self._found)[:-KEPT]:
                del self._found[oldest]
