"""Which records stand next to which in a session: what was said before and after, by time."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from storage.search.entries import DocumentEntry

REACH = 2
MAX_OF_SESSION = 100
MAX_AT_ONCE = 4
"""So many records of one moment are looked at: an entry and what was found in it share theirs."""


class Neighbours(NamedTuple):
    """(pairs,) each: the number of the record that was asked about, in rising order; the label of one next to it; how many moments
    lie from the one to the other."""

    rows: np.ndarray
    labels: np.ndarray
    far: np.ndarray


@dataclass(slots=True)
class _Session:
    """Moments and the labels that stand there, in the order of both."""

    moments: list[int] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)

    def place(self, moment: int, label: int) -> int:
        """Where the label stands, or would."""
        start = bisect_left(self.moments, moment)
        return bisect_left(self.labels, label, start, bisect_right(self.moments, moment, start))

    def around(self, moment: int) -> Iterable[tuple[int, Sequence[int]]]:
        """(distance, labels) of up to REACH moments before and after, and of each moment those nearest to the one asked about."""
        moments, labels = self.moments, self.labels
        stop = bisect_left(moments, moment)
        start = bisect_right(moments, moment, stop)
        for far in range(1, REACH + 1):
            if stop:
                first = bisect_left(moments, moments[stop - 1], 0, stop)
                yield far, labels[max(first, stop - MAX_AT_ONCE) : stop]
                stop = first
            if start < len(moments):
                last = bisect_right(moments, moments[start], start)
                yield far, labels[start : min(last, start + MAX_AT_ONCE)]
                start = last


class Timelines:
    """Labels by session and moment, in memory. One thread adds and removes; any number look."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[str, int]] = {}
        self._sessions: dict[str, _Session] = {}
        self._changing = threading.Lock()

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Place the documents that have a session and a time; those that are placed keep their places."""
        for entry in entries:
            if entry.session_id is not None and entry.created_at is not None and entry.label not in self._places:
                moment = _microseconds(entry)
                key = f"{entry.namespace}\0{entry.session_id}"
                with self._changing:
                    self._places[entry.label] = key, moment
                    session = self._sessions.setdefault(key, _Session())
                    place = session.place(moment, entry.label)
                    session.moments.insert(place, moment)
                    session.labels.insert(place, entry.label)

    def remove(self, labels: Sequence[int]) -> None:
        """Take the labels out of their sessions."""
        with self._changing:
            for label in labels:
                if (found := self._places.pop(label, None)) is not None:
                    session = self._sessions[found[0]]
                    place = session.place(found[1], label)
                    del session.moments[place], session.labels[place]

    def session(self, label: int) -> str | None:
        """The session of a record, without its namespace."""
        place = self._places.get(label)
        return None if place is None else place[0].split("\0", 1)[1]

    def together(self, labels: Iterable[int], most: int) -> list[int]:
        """The records of the first `most` sessions of these labels; of a long one every so many-th, at most MAX_OF_SESSION."""
        keys = dict.fromkeys(place[0] for label in labels if (place := self._places.get(label)) is not None)
        found: list[int] = []
        for key in islice(keys, most):
            with self._changing:
                session = self._sessions[key].labels
                found += session[:: -(-len(session) // MAX_OF_SESSION) or 1]
        return found

    def around(self, labels: Iterable[int]) -> Neighbours:
        """The records up to REACH moments away from each of these labels, before and after; those of the same moment are none."""
        rows: list[int] = []
        others: list[int] = []
        distances: list[int] = []
        with self._changing:
            for row, label in enumerate(labels):
                if (place := self._places.get(label)) is not None:
                    for far, some in self._sessions[place[0]].around(place[1]):
                        others += some
                        distances += [far] * len(some)
                    rows += [row] * (len(others) - len(rows))
        return Neighbours(np.array(rows, np.int64), np.array(others, np.int64), np.array(distances, np.int64))


def _microseconds(entry: DocumentEntry) -> int:
    assert entry.created_at is not None
    moment = entry.created_at.replace(tzinfo=None)
    return (moment.toordinal() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second) * 1_000_000 + moment.microsecond
