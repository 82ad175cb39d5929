"""Which records stand next to which in a session: what was said before and after, by time."""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Iterable, Sequence
from itertools import islice

from storage.search.entries import DocumentEntry

REACH = 2
MAX_OF_SESSION = 100
MAX_AT_ONCE = 4
"""So many records of one moment are looked at: an entry and what was found in it share theirs."""


class Timelines:
    """Labels by session and moment, in memory. One thread adds and removes; any number look."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[str, int]] = {}
        self._sessions: dict[str, list[tuple[int, int]]] = {}
        self._changing = threading.Lock()

    def add(self, entries: Iterable[DocumentEntry]) -> None:
        """Place the documents that have a session and a time; those that are placed keep their places."""
        for entry in entries:
            if entry.session_id is not None and entry.created_at is not None and entry.label not in self._places:
                moment = _microseconds(entry)
                key = f"{entry.namespace}\0{entry.session_id}"
                with self._changing:
                    self._places[entry.label] = key, moment
                    insort(self._sessions.setdefault(key, []), (moment, entry.label))

    def remove(self, labels: Sequence[int]) -> None:
        """Take the labels out of their sessions."""
        with self._changing:
            for label in labels:
                if (place := self._places.pop(label, None)) is not None:
                    self._sessions[place[0]].remove((place[1], label))

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
                session = self._sessions[key]
                found += [label for _, label in session[:: -(-len(session) // MAX_OF_SESSION) or 1]]
        return found

    def around(self, label: int) -> list[tuple[int, int]]:
        """(label, distance) of the records up to REACH moments away, before and after; the same moment is none."""
        return self.around_each([label]).get(label, [])

    def around_each(self, labels: Iterable[int]) -> dict[int, list[tuple[int, int]]]:
        """`around` of each label that has neighbours."""
        found: dict[int, list[tuple[int, int]]] = {}
        with self._changing:
            for label in labels:
                if (place := self._places.get(label)) is not None:
                    session, moment = self._sessions[place[0]], place[1]
                    before = bisect_left(session, (moment, -1))
                    after = before + 1
                    if after < len(session) and session[after][0] == moment:
                        after = bisect_left(session, (moment + 1, -1), after)
                    if near := [*_walk(session, before - 1, -1), *_walk(session, after, 1)]:
                        found[label] = near
        return found


def _walk(session: Sequence[tuple[int, int]], at: int, step: int) -> list[tuple[int, int]]:
    """From `at`, which is another moment, in one direction, until REACH moments are passed."""
    found: list[tuple[int, int]] = []
    distance, here, count, end = 0, -1, 0, len(session) if step > 0 else -1
    while at != end:
        when, label = session[at]
        if when != here:
            if distance == REACH:
                break
            distance, here, count = distance + 1, when, 0
        if count < MAX_AT_ONCE:
            found.append((label, distance))
            count += 1
        at += step
    return found


def _microseconds(entry: DocumentEntry) -> int:
    assert entry.created_at is not None
    moment = entry.created_at.replace(tzinfo=None)
    return (moment.toordinal() * 86_400 + moment.hour * 3600 + moment.minute * 60 + moment.second) * 1_000_000 + moment.microsecond
