"""Numbers by label in two sorted arrays.

They take a tenth of a dict's memory, and many labels are looked up at once.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

MAX_FRESH = 1024
"""This many new labels wait in a dict before the arrays are rebuilt (a millisecond per 100,000)."""
ABSENT = -1
REMOVED = -1
"""In the place of the label of a row that is gone."""


def places_in(sorted_labels: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Where each of (n,) labels stands among the sorted ones, ABSENT where it does not."""
    if not len(sorted_labels):
        return np.full(len(labels), ABSENT, np.int64)
    at = np.minimum(np.searchsorted(sorted_labels, labels), len(sorted_labels) - 1)
    places: np.ndarray = np.where(sorted_labels[at] == labels, at, ABSENT)
    return places


class LabelMap:
    """label (int64) -> a number that is 0 or more. One thread adds and removes; any number look."""

    def __init__(self, labels: np.ndarray | None = None, values: np.ndarray | None = None) -> None:
        """`labels` (n,) int64, all different, with their (n,) values; nothing by default."""
        keys = np.empty(0, np.int64) if labels is None else np.asarray(labels, np.int64)
        numbers = np.empty(0, np.int64) if values is None else np.asarray(values, np.int64)
        order = np.argsort(keys)
        self._state: tuple[np.ndarray, np.ndarray, dict[int, int]] = keys[order], numbers[order], {}
        """Sorted labels, their values, and what was added since. Replaced, so that a reader sees one or the other."""

    def __len__(self) -> int:
        keys, _, fresh = self._state
        return len(keys) + len(fresh)

    def __contains__(self, label: int) -> bool:
        return self.get(label) != ABSENT

    def get(self, label: int) -> int:
        """The number of a label, ABSENT when it has none."""
        keys, values, fresh = self._state
        if (number := fresh.get(label)) is not None:
            return number
        at = int(keys.searchsorted(label))  # the method: half the time of the function
        return int(values[at]) if at < len(keys) and keys[at] == label else ABSENT

    def find(self, labels: np.ndarray) -> np.ndarray:
        """(n,) int64 labels -> their (n,) numbers, ABSENT where there is none."""
        keys, values, fresh = self._state
        numbers = np.full(len(labels), ABSENT, np.int64)
        if len(keys):
            at = np.minimum(np.searchsorted(keys, labels), len(keys) - 1)
            is_there = keys[at] == labels
            numbers[is_there] = values[at[is_there]]
        if fresh:
            missing = np.flatnonzero(numbers == ABSENT)
            numbers[missing] = [fresh.get(label, ABSENT) for label in labels[missing].tolist()]
        return numbers

    def add(self, label: int, value: int) -> None:
        """A label that is not there yet."""
        fresh = self._state[2]
        fresh[label] = value
        if len(fresh) > MAX_FRESH:
            self._settle()

    def extend(self, labels: np.ndarray, values: np.ndarray) -> None:
        """(n,) different labels that are not there yet, with their (n,) values."""
        if len(labels) <= MAX_FRESH // 8:
            for label, value in zip(labels.tolist(), values.tolist(), strict=True):
                self.add(label, value)
            return
        keys, numbers = self._settle()
        order = np.argsort(labels)
        places = np.searchsorted(keys, labels[order])
        self._state = np.insert(keys, places, labels[order]), np.insert(numbers, places, values[order]), {}

    def remove(self, labels: Sequence[int]) -> None:
        """Labels that have no number any more; unknown ones are ignored."""
        keys, values = self._settle()
        kept = ~np.isin(keys, np.asarray(labels, np.int64))
        self._state = keys[kept], values[kept], {}

    def labels(self) -> np.ndarray:
        """Every label, sorted."""
        keys, _, fresh = self._state
        return np.sort(np.concatenate([keys, np.fromiter(list(fresh), np.int64)])) if fresh else keys

    def _settle(self) -> tuple[np.ndarray, np.ndarray]:
        keys, values, fresh = self._state
        if fresh:
            labels, numbers = (
                np.fromiter(fresh, np.int64, len(fresh)),
                np.fromiter(fresh.values(), np.int64, len(fresh)),
            )
            order = np.argsort(labels)
            places = np.searchsorted(keys, labels[order])
            keys, values = np.insert(keys, places, labels[order]), np.insert(values, places, numbers[order])
            self._state = keys, values, {}
        return keys, values
