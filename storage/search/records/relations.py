"""Relations between records by label, in memory.

The side graph is what is one relation away from the best hits of the other sides.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import duckdb
import numpy as np

from storage.append_only import NOTHING, Mark, follow_rows
from storage.search.records.id_table import IdTable
from storage.search.records.label_map import ABSENT, LabelMap, places_in
from streams.event_types.context_edges import REM_WEIGHT
from streams.ids import document_label, record_label

_COLUMNS = {
    "relations": "namespace, from_id, to_id",
    "merges": "namespace, record_id, into_id",
    "context_ends": "namespace, memory_id, merged_into",
    "entities": "namespace, entity_id, label, source_event_id",
    "corrections": "namespace, successor_id, record_id",
    "supersessions": "namespace, successor_id, record_id",
    "memory_changes": "namespace, newer_id, older_id",
    "restatements": "namespace, record_id, stated_at",
    "agreements": "namespace, one_id, other_id",
    "context_edge_changes": "namespace, source_id, target_id, kind, weight, is_removed",
}
FOLLOWED = tuple(_COLUMNS)


class Together(NamedTuple):
    """(pairs,) each: the number of a record, that of one recalled with it, how often and how high, 0 to 1.

    `outside`: (n,) the most of each record with one that is not among them.
    """

    rows: np.ndarray
    others: np.ndarray
    strengths: np.ndarray
    outside: np.ndarray


class Relations:
    """Every relation in both directions, merges, and the entities that were found in each event.

    `follow` brings it up to date with the tables; any number of threads read.
    """

    def __init__(self, merged: Callable[[Sequence[tuple[int, int]]], None] = lambda pairs: None) -> None:
        """`merged` is told of each merge: (label, label of the record that it was merged into)."""
        self._merged = merged
        self._following = threading.Lock()
        self._generation = -1
        self._clear()

    def _clear(self) -> None:
        self._edges: Pairs = np.empty(0, np.int64), np.empty(0, np.int64)
        """Sorted labels of one end, and those of the other, of one record the newest last. Replaced, never changed."""
        self._found: Pairs = np.empty(0, np.int64), np.empty(0, np.int64)
        """Sorted labels of events, and those of the entities that were found in them."""
        self._heads: dict[int, int] = {}
        self._members: dict[int, list[int]] = defaultdict(list)
        self.newer: dict[int, list[int]] = {}
        """By record those that change what it says, the latest found last."""
        self.older: dict[int, list[int]] = {}
        """By record those of which it changes what they say."""
        self.changing: set[int] = set()
        """The records of `newer` and `older`: few of all, so that a search asks these two for few."""
        self.agreed: dict[int, list[int]] = {}
        """By record those that hold beside it, as a resolution says, although one changes the other."""
        self.restated: dict[int, list[datetime]] = {}
        """By record that was stated again the times of that, UTC without a zone."""
        self._together: dict[int, dict[int, float]] = {}
        """By record those that searches returned with it, 0 to 1. An inner dict is replaced, never changed."""
        self._kinds: list[str] = []
        self._kind_of = LabelMap()
        self._ids = IdTable()
        self._read: dict[str, Mark] = dict.fromkeys(FOLLOWED, NOTHING)

    def follow(self, cursor: duckdb.DuckDBPyConnection, generation: int, rows: Mapping[str, int]) -> None:
        """Read what has come since the last generation; `rows`: how many each table has now.

        Takes less than a millisecond after a write, a second per 300,000 relations at first.
        """
        if generation <= self._generation:
            return
        with self._following:
            if generation > self._generation and not self._grow(cursor, rows):
                self._clear()
                if not self._grow(cursor, rows):  # written between two looks: the next search looks again
                    return
            self._generation = max(generation, self._generation)

    def _grow(self, cursor: duckdb.DuckDBPyConnection, rows: Mapping[str, int]) -> bool:
        takers = {
            "relations": self._relate,
            "merges": self._merge,
            "context_ends": self._merge,
            "entities": self._find,
            "corrections": self._change,
            "supersessions": self._change,
            "memory_changes": self._change,
            "restatements": self._restate,
            "agreements": self._agree,
            "context_edge_changes": self._join,
        }
        for table, take in takers.items():
            if rows[table] == self._read[table].rows:
                continue
            reached = follow_rows(cursor, table, _COLUMNS[table], self._read[table], rows[table], take)
            if reached is None:
                return False
            self._read[table] = reached
        return True

    def _relate(self, rows: Sequence[tuple[Any, ...]]) -> None:
        ends = self._ids.add([(row[0], end) for row in rows for end in row[1:]])
        first, second = ends[::2], ends[1::2]
        self._edges = _inserted(*self._edges, np.concatenate([first, second]), np.concatenate([second, first]))

    def _merge(self, rows: Sequence[tuple[Any, ...]]) -> None:
        ends = self._ids.add([(row[0], end) for row in rows for end in row[1:]]).tolist()
        pairs = list(zip(ends[::2], ends[1::2], strict=True))
        for member, head in pairs:
            self._heads[member] = head
            self._members[head].append(member)
        self._merged(pairs)

    def _change(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take pairs of a newer and an older record; what was retracted has nothing newer."""
        for namespace, *pair in rows:
            if None not in pair:
                newer, older = (document_label(namespace, record_id) for record_id in pair)
                self.newer[older] = [*self.newer.get(older, ()), newer]
                self.older[newer] = [*self.older.get(newer, ()), older]
                self.changing.update((newer, older))

    def _restate(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for namespace, record_id, stated_at in rows:
            self.restated.setdefault(document_label(namespace, record_id), []).append(stated_at)

    def _agree(self, rows: Sequence[tuple[Any, ...]]) -> None:
        for namespace, *pair in rows:
            one, other = (document_label(namespace, record_id) for record_id in pair)
            self.agreed[one] = [*self.agreed.get(one, ()), other]
            self.agreed[other] = [*self.agreed.get(other, ()), one]

    def _join(self, rows: Sequence[tuple[Any, ...]]) -> None:
        """Take what dreams made of the edges between memories; those count that searches have earned."""
        for namespace, source_id, target_id, kind, weight, is_removed in rows:
            if kind != "rem":
                continue
            one, other = (document_label(namespace, end) for end in (source_id, target_id))
            strength = 0.0 if is_removed else max(0.0, (weight - REM_WEIGHT) / (1 - REM_WEIGHT))
            for label, end in ((one, other), (other, one)):
                ends = {known: value for known, value in self._together.get(label, {}).items() if known != end}
                self._together[label] = ends | ({end: strength} if strength else {})

    def recalled_together(self, labels: np.ndarray) -> Together | None:
        """What (n,) sorted labels have in common by what searches returned; None where they have nothing."""
        if not self._together:
            return None
        found = [self._together.get(label, {}) for label in labels.tolist()]
        if not any(found):
            return None
        rows = np.repeat(np.arange(len(found)), [len(ends) for ends in found])
        others = places_in(labels, np.array([end for ends in found for end in ends], np.int64))
        strengths = np.array([strength for ends in found for strength in ends.values()])
        is_here = others != ABSENT
        outside = np.zeros(len(found))
        np.maximum.at(outside, rows[~is_here], strengths[~is_here])
        return Together(rows[is_here], others[is_here], strengths[is_here], outside)

    def _find(self, rows: Sequence[tuple[Any, ...]]) -> None:
        entities = self._ids.add([(namespace, entity_id) for namespace, entity_id, _, _ in rows])
        events = np.array([_event_label(namespace, event_id) for namespace, _, _, event_id in rows], np.int64)
        self._found = _inserted(*self._found, events, entities)
        numbers = {kind: number for number, kind in enumerate(self._kinds)}
        for row in rows:
            if row[2] not in numbers:
                numbers[row[2]] = len(self._kinds)
                self._kinds.append(row[2])
        self._kind_of.extend(entities, np.array([numbers[row[2]] for row in rows], np.int64))

    def stands_for_others(self, labels: Sequence[int]) -> bool:
        """Whether any of these records stands for one that was merged into it."""
        return any(label in self._members for label in labels)

    def neighbours(self, parents: Sequence[int]) -> dict[int, int]:
        """label -> the place (0 = best) of its best parent, best first, of one parent the newest first.

        Relations count in both directions; a merged record stands for the one that it was merged into.
        """
        best: dict[int, int] = {}
        for place, parent in enumerate(parents):
            for other in self._ends(parent):
                head = self._heads.get(other, other)
                if head != parent:
                    best.setdefault(head, place)
        return best

    def _ends(self, parent: int) -> list[int]:
        """What is one relation away from a record and from those that it stands for."""
        labels = (parent, *self._members.get(parent, ()))
        return [other for label in labels for other in _of(self._edges, label)[::-1].tolist()]

    def ends(self, namespace: str, record_id: str, event_id: str | None = None) -> dict[str, str | None]:
        """id -> kind of what is one relation away from a record, and of the entities found in its event.

        The kind is None where it is not an entity. A merged record stands for the one that it was merged into.
        """
        parent = document_label(namespace, record_id)
        found = [] if event_id is None else _of(self._found, _event_label(namespace, event_id)).tolist()
        heads = dict.fromkeys(self._heads.get(other, other) for other in (*self._ends(parent), *found))
        heads.pop(parent, None)
        named = {name: label for label in heads if (name := self._ids.get(label)) is not None}
        return {name: self._kind(label) for name, label in named.items()}

    def _kind(self, label: int) -> str | None:
        number = self._kind_of.get(label)
        return None if number == ABSENT else self._kinds[number]


Pairs = tuple[np.ndarray, np.ndarray]


def _event_label(namespace: str, event_id: str) -> int:
    return record_label(f"{namespace}\0event\0{event_id}")


def _of(pairs: Pairs, label: int) -> np.ndarray:
    ends, others = pairs
    start, stop = np.searchsorted(ends, [label, label + 1]).tolist()
    return others[start:stop]


def _inserted(ends: np.ndarray, others: np.ndarray, new_ends: np.ndarray, new_others: np.ndarray) -> Pairs:
    """Behind what is there of the same label."""
    order = np.argsort(new_ends, kind="stable")
    places = np.searchsorted(ends, new_ends[order], side="right")
    return np.insert(ends, places, new_ends[order]), np.insert(others, places, new_others[order])
