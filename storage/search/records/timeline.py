"""Which records stand next to which: what was said before and after, by time.

In a session all of them; without one, what came over one connection with no gap of more than half an hour.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from storage.search.entries import DocumentEntry
from storage.search.records.label_map import ABSENT, places_in

REACH = 2
MAX_OF_SESSION = 100
MAX_OF_MOMENT = 4
"""Records of one moment that count: an entry and what was found in it share theirs."""
GAP = 30 * 60 * 1_000_000
"""Microseconds: over a connection, moments further apart are not neighbours."""
_CAPACITY = 1024
_NONE = -1


class Neighbours(NamedTuple):
    """(pairs,) each: the number of a record, in rising order. The label of one next to it; moments between them."""

    rows: np.ndarray
    labels: np.ndarray
    far: np.ndarray


class _Key(NamedTuple):
    """What a timeline is of: a session, or a connection where no session was named."""

    namespace: str
    session_id: str | None
    connection: str | None


@dataclass(frozen=True, slots=True)
class _Timeline:
    """Its moments in order, and the number of each."""

    key: _Key
    moments: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


class Timelines:
    """Labels by session or connection, and by moment. One thread adds and removes; any number look.

    A moment of a timeline has a number, and by number the moments before and after it and the labels that its
    neighbours see of it: finding the neighbours of some hundred records is a few steps over arrays. Number 0 is not a
    moment.
    """

    def __init__(self) -> None:
        self._number_of: dict[int, int] = {}
        self._timelines: dict[_Key, _Timeline] = {}
        self._of: list[tuple[_Timeline, int]] = [(_Timeline(_Key("", None, None)), 0)]
        """By number the timeline and the moment."""
        self._crowds: dict[int, list[int]] = {}
        """By number the sorted labels of a moment that has several."""
        self._before = np.zeros(_CAPACITY, np.int64)
        self._after = np.zeros(_CAPACITY, np.int64)
        self._first = np.full((_CAPACITY, MAX_OF_MOMENT), _NONE, np.int64)
        """By number the lowest labels of a moment, which those before it see."""
        self._last = self._first.copy()
        """By number the highest, which those after it see."""
        self._changing = threading.Lock()

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Place the documents that have a time, and a session or connection.

        Those that are placed keep their places.
        """
        for entry in entries:
            connection = entry.connection if entry.session_id is None else None
            key = _Key(entry.namespace, entry.session_id, connection)
            if key[1:] != (None, None) and entry.created_at is not None and entry.label not in self._number_of:
                with self._changing:
                    self._place(key, _microseconds(entry), entry.label)

    def _place(self, key: _Key, moment: int, label: int) -> None:
        timeline = self._timelines.get(key) or self._timelines.setdefault(key, _Timeline(key))
        at = bisect_left(timeline.moments, moment)
        if at < len(timeline.moments) and timeline.moments[at] == moment:
            number = timeline.numbers[at]
            labels = self._crowds.setdefault(number, self._labels(number))
            insort(labels, label)
            self._show(number, labels)
        else:
            number = len(self._of)
            self._of.append((timeline, moment))
            self._reserve(number)
            before, after = (
                timeline.numbers[at - 1] if at else 0,
                timeline.numbers[at] if at < len(timeline.numbers) else 0,
            )
            timeline.moments.insert(at, moment)
            timeline.numbers.insert(at, number)
            self._link(before, number)
            self._link(number, after)
            self._first[number, 0] = self._last[number, 0] = label
        self._number_of[label] = number

    def stand_in(self, pairs: Iterable[tuple[int, int]]) -> None:
        """Put what records were merged into where the first of them stands, unless it stands earlier.

        `pairs`: (record, what it was merged into), by label. So what was said before and after the one counts for the
        other, though the merge came later.
        """
        with self._changing:
            for record, head in pairs:
                number, own = self._number_of.get(record), self._number_of.get(head)
                if number is None or number == own:
                    continue
                timeline, moment = self._of[number]
                if own is None or moment < self._of[own][1]:
                    self._remove(head)
                    self._place(timeline.key, moment, head)

    def _labels(self, number: int) -> list[int]:
        return self._crowds.get(number) or [int(self._first[number, 0])]

    def _show(self, number: int, labels: Sequence[int]) -> None:
        self._first[number] = self._last[number] = _NONE
        self._first[number, : len(labels)] = labels[:MAX_OF_MOMENT]
        self._last[number, : len(labels)] = labels[-MAX_OF_MOMENT:]

    def _link(self, before: int, after: int) -> None:
        """Make these the neighbours of each other; of number 0, or far apart, each has none on that side."""
        is_near = self._is_near(before, after)
        if before:
            self._after[before] = after if is_near else 0
        if after:
            self._before[after] = before if is_near else 0

    def _is_near(self, before: int, after: int) -> bool:
        timeline, moment = self._of[before]
        return timeline.key.session_id is not None or self._of[after][1] - moment <= GAP

    def _reserve(self, number: int) -> None:
        if number >= len(self._before):
            more = len(self._before)
            self._before, self._after = (np.pad(links, (0, more)) for links in (self._before, self._after))
            self._first, self._last = (
                np.pad(seen, ((0, more), (0, 0)), constant_values=_NONE) for seen in (self._first, self._last)
            )

    def remove(self, labels: Sequence[int]) -> None:
        """Take the labels out of their timelines."""
        with self._changing:
            for label in labels:
                self._remove(label)

    def _remove(self, label: int) -> None:
        if (number := self._number_of.pop(label, None)) is not None:
            left = [other for other in self._labels(number) if other != label]
            self._show(number, left)
            if number in self._crowds:
                self._crowds[number] = left
            if not left:
                self._end(number)

    def _end(self, number: int) -> None:
        """Nothing stands at this moment any more."""
        timeline, moment = self._of[number]
        at = bisect_left(timeline.moments, moment)
        del timeline.moments[at], timeline.numbers[at]
        self._crowds.pop(number, None)
        self._link(int(self._before[number]), int(self._after[number]))

    def session(self, label: int) -> str | None:
        """The session of a record, without its namespace."""
        number = self._number_of.get(label)
        return None if number is None else self._of[number][0].key.session_id

    def together(self, labels: Iterable[int], most: int) -> list[int]:
        """The records of the first `most` sessions of these labels; of a long one an even MAX_OF_SESSION."""
        known = (self._of[number][0] for label in labels if (number := self._number_of.get(label)) is not None)
        sessions = {timeline.key: timeline for timeline in known if timeline.key.session_id is not None}
        found: list[int] = []
        for session in islice(sessions.values(), most):
            with self._changing:
                every = [label for number in session.numbers for label in self._labels(number)]
            found += every[:: -(-len(every) // MAX_OF_SESSION) or 1]
        return found

    def among(self, labels: np.ndarray) -> Neighbours:
        """Pairs of neighbours within these sorted labels; both are the numbers of labels, not labels."""
        around = self.around(labels.tolist())
        places = places_in(labels, around.labels)
        is_there = places != ABSENT
        return Neighbours(around.rows[is_there], places[is_there], around.far[is_there])

    def beside(self, label: int) -> tuple[list[int], list[int]]:
        """What `around` finds before a record, and what after it, each the nearest first."""
        earlier, later = list[int](), list[int]()
        with self._changing:
            before = after = self._number_of.get(label, 0)
            for _ in range(REACH):
                before, after = int(self._before[before]), int(self._after[after])
                earlier += self._last[before][::-1].tolist()
                later += self._first[after].tolist()
        return [one for one in earlier if one != _NONE], [one for one in later if one != _NONE]

    def around(self, labels: Iterable[int]) -> Neighbours:
        """The records up to REACH moments before and after each of these labels.

        Of a moment the MAX_OF_MOMENT nearest; records of the same moment are not neighbours.
        """
        known = self._number_of
        with self._changing:
            before = after = np.array([known.get(label, 0) for label in labels], np.int64)
            seen: list[np.ndarray] = []
            for _ in range(REACH):
                before, after = self._before[before], self._after[after]
                seen += self._last[before], self._first[after]
        others = np.concatenate(seen, axis=1)
        rows, columns = np.nonzero(others != _NONE)
        return Neighbours(rows, others[rows, columns], 1 + columns // (2 * MAX_OF_MOMENT))


def _microseconds(entry: DocumentEntry) -> int:
    assert entry.created_at is not None
    moment = entry.created_at.replace(tzinfo=None)
    return (
        moment.toordinal() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second
    ) * 1_000_000 + moment.microsecond
