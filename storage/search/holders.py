"""Which documents hold a word, remembered for the words that were asked for: to count matches that no ranking needs."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

MAX_LABELS = 2_000_000
"""So many are remembered in all (16 MB); the words that were not asked for longest go first."""


@dataclass(slots=True)
class _Held:
    """The documents of a word, sorted, int64: None until they have been looked for; and those that have come since."""

    labels: np.ndarray | None = None
    fresh: list[int] = field(default_factory=list)


class Holders:
    """Labels of documents by word. One thread adds, any number ask."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _Held] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def added(self, label: int, words: Iterable[str]) -> None:
        """A document with these words can be found from now on."""
        with self._lock:
            for word in words:
                if (held := self._known.get(word)) is not None:
                    held.fresh.append(label)

    def clear(self) -> None:
        """Documents have gone: everything is looked for anew."""
        with self._lock:
            self._known, self._size = OrderedDict(), 0

    def of(self, word: str, find: Callable[[str], np.ndarray]) -> np.ndarray:
        """The documents that hold the word, sorted. `find` gives all that can be found when it is called."""
        with self._lock:  # known before it is looked for: what comes meanwhile is told
            held = self._known.setdefault(word, _Held())
            self._known.move_to_end(word)
        found = np.unique(find(word)) if held.labels is None else None
        with self._lock:
            labels = held.labels
            if labels is None:
                assert found is not None
                labels = held.labels = found
                self._size += len(labels) if self._known.get(word) is held else 0
            if held.fresh:
                held.labels, held.fresh = _with(labels, held.fresh), []
                self._size += len(held.labels) - len(labels) if self._known.get(word) is held else 0
                labels = held.labels
            while self._size > MAX_LABELS:
                _, oldest = self._known.popitem(last=False)
                self._size -= 0 if oldest.labels is None else len(oldest.labels)
            return labels


def _with(labels: np.ndarray, fresh: Iterable[int]) -> np.ndarray:
    new = np.setdiff1d(np.fromiter(fresh, np.int64), labels)
    joined: np.ndarray = np.insert(labels, np.searchsorted(labels, new), new)
    return joined
