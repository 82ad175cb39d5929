"""Which documents hold a word, remembered for the words that were asked for: to count matches that no ranking needs.

Documents have numbers here, in the order in which they are met, so that a word's documents are places in an array.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from storage.search.records.label_map import ABSENT, LabelMap

MAX_NUMBERS = 4_000_000
"""So many are remembered in all (16 MB); the words that were not asked for longest go first."""


@dataclass(slots=True)
class _Held:
    """The numbers of a word's documents, int32, in no order: None until they have been looked for; and the labels of those that have
    come since."""

    numbers: np.ndarray | None = None
    fresh: list[int] = field(default_factory=list)


class Holders:
    """Documents by word. One thread adds, any number ask."""

    def __init__(self) -> None:
        self._numbers = LabelMap()
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
        """Documents have gone: everything is looked for anew. Numbers stay."""
        with self._lock:
            self._known, self._size = OrderedDict(), 0

    def places(self, labels: np.ndarray) -> np.ndarray:
        """(n,) different labels -> their (n,) numbers; one that has none gets the next."""
        with self._lock:
            return self._numbered(labels)

    def _numbered(self, labels: np.ndarray) -> np.ndarray:
        numbers = self._numbers.find(labels)
        missing = np.flatnonzero(numbers == ABSENT)
        if len(missing):
            numbers[missing] = np.arange(len(self._numbers), len(self._numbers) + len(missing))
            self._numbers.extend(labels[missing], numbers[missing])
        return numbers

    def of(self, word: str, find: Callable[[str], np.ndarray]) -> np.ndarray:
        """The numbers of the documents that hold the word, int32, in no order, perhaps twice. `find` gives the labels of all that can
        be found when it is called."""
        with self._lock:  # known before it is looked for: what comes meanwhile is told
            held = self._known.setdefault(word, _Held())
            self._known.move_to_end(word)
        found = np.unique(find(word)) if held.numbers is None else None
        with self._lock:
            before = 0 if held.numbers is None else len(held.numbers)
            if held.numbers is None:
                assert found is not None
                held.numbers = self._numbered(found).astype(np.int32)
            if held.fresh:
                fresh = self._numbered(np.unique(np.array(held.fresh, np.int64))).astype(np.int32)
                held.numbers, held.fresh = np.concatenate([held.numbers, fresh]), []
            self._size += len(held.numbers) - before if self._known.get(word) is held else 0
            while self._size > MAX_NUMBERS:
                _, oldest = self._known.popitem(last=False)
                self._size -= 0 if oldest.numbers is None else len(oldest.numbers)
            return held.numbers

    def any_of(self, words: Iterable[str], find: Callable[[str], np.ndarray]) -> np.ndarray:
        """(n,) by number, whether the document holds one of the words."""
        holding = [self.of(word, find) for word in words]
        marked = np.zeros(len(self._numbers), bool)  # now: every number that was given until here is below
        for numbers in holding:
            marked[numbers] = True
        return marked
