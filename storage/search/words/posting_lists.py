"""Posting lists of the last words, cached: to count matches that no ranking needs.

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
"""Numbers in all lists (16 MB); the least recently used words go first."""


@dataclass(slots=True)
class _PostingList:
    """The numbers of a word's documents, int32, unordered, None until they are read. `fresh`: labels added since."""

    numbers: np.ndarray | None = None
    fresh: list[int] = field(default_factory=list)


class PostingLists:
    """Documents by word. One thread adds, any number read."""

    def __init__(self) -> None:
        self._numbers = LabelMap()
        self._lists: OrderedDict[str, _PostingList] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def added(self, label: int, words: Iterable[str]) -> None:
        """A document with these words can be found from now on."""
        with self._lock:
            for word in words:
                if (postings := self._lists.get(word)) is not None:
                    postings.fresh.append(label)

    def clear(self) -> None:
        """Documents have gone: every list is read anew. Numbers stay."""
        with self._lock:
            self._lists, self._size = OrderedDict(), 0

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
        """The numbers of the documents that have the word, int32, unordered, perhaps twice.

        `find` gives the labels of all that can be found when it is called.
        """
        with self._lock:  # listed before it is read: what is added meanwhile is among the fresh
            postings = self._lists.setdefault(word, _PostingList())
            self._lists.move_to_end(word)
        found = np.unique(find(word)) if postings.numbers is None else None
        with self._lock:
            before = 0 if postings.numbers is None else len(postings.numbers)
            if postings.numbers is None:
                assert found is not None
                postings.numbers = self._numbered(found).astype(np.int32)
            if postings.fresh:
                fresh = self._numbered(np.unique(np.array(postings.fresh, np.int64))).astype(np.int32)
                postings.numbers, postings.fresh = np.concatenate([postings.numbers, fresh]), []
            self._size += len(postings.numbers) - before if self._lists.get(word) is postings else 0
            while self._size > MAX_NUMBERS:
                _, oldest = self._lists.popitem(last=False)
                self._size -= 0 if oldest.numbers is None else len(oldest.numbers)
            return postings.numbers

    def any_of(self, words: Iterable[str], find: Callable[[str], np.ndarray]) -> np.ndarray:
        """(n,) by number, whether the document has one of the words."""
        lists = [self.of(word, find) for word in words]
        marked = np.zeros(len(self._numbers), bool)  # now: every number that was given until here is below
        for numbers in lists:
            marked[numbers] = True
        return marked
