"""Ids by label, in one piece of memory: a tenth of a dict of strings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from storage.search.records.label_map import ABSENT, LabelMap
from streams.ids import document_label

_LENGTH_BITS = 20
_MAX_BYTES = (1 << _LENGTH_BITS) - 1


class IdTable:
    """label -> id. One thread adds; any number read."""

    def __init__(self) -> None:
        self._text = bytearray()
        self._places = LabelMap()

    def add(self, records: Sequence[tuple[str, str]]) -> np.ndarray:
        """The labels of (namespace, id) pairs, (n,) int64; `get` gives the ids back from now on."""
        labels = np.array([document_label(*record) for record in records], np.int64)
        different, first = np.unique(labels, return_index=True)
        first = first[self._places.find(different) == ABSENT]
        bodies = [records[number][1].encode()[:_MAX_BYTES] for number in first.tolist()]
        sizes = np.array([len(body) for body in bodies], np.int64)
        starts = len(self._text) + np.cumsum(sizes) - sizes
        self._text += b"".join(bodies)
        self._places.extend(labels[first], starts << _LENGTH_BITS | sizes)  # last: a reader finds the whole id
        return labels

    def get(self, label: int) -> str | None:
        """The id of a label, None of an unknown one."""
        place = self._places.get(label)
        if place == ABSENT:
            return None
        start = place >> _LENGTH_BITS
        return self._text[start : start + (place & _MAX_BYTES)].decode(errors="replace")
