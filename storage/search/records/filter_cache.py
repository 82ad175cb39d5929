"""What each filter leaves, remembered: a search after a write looks at the new rows only."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import numpy as np

from storage.search.records.append_only import NOTHING, Mark, mark, new_rows
from storage.search.records.filter import ROW_COLUMNS, Filter, is_plain, leaves, resolve
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.passages import PassageIndex
from streams.ids import document_label

REMEMBERED = 8
ENDED_BY = ("merges", "prunes")
"""Tables whose rows take a record out of what `exclude_merged` leaves."""


@dataclass(slots=True)
class Allowed:
    """The labels that a filter leaves, sorted, int64. `is_everything`: no document is left out."""

    labels: np.ndarray
    is_everything: bool
    _widened: tuple[int, np.ndarray] | None = None

    @property
    def restriction(self) -> np.ndarray | None:
        """The labels, None when they restrict nothing. None is a hint: what is found is read under the filter's own condition."""
        return None if self.is_everything else self.labels

    def widened(self, passages: PassageIndex) -> np.ndarray | None:
        """The restriction with all passages of what it leaves."""
        if self.is_everything or not len(passages):
            return self.restriction
        known = self._widened
        if known is None or known[0] != len(passages):
            known = self._widened = len(passages), passages.widened(self.labels)
        return known[1]

    def of(self, labels: np.ndarray) -> np.ndarray:
        """Those of some labels that the filter leaves, in their order."""
        left: np.ndarray = labels[places_in(self.labels, labels) != ABSENT]
        return left


@dataclass(frozen=True, slots=True)
class _Known:
    """A filter's labels as of a generation, how far the documents were read for it, and how many records had ended."""

    generation: int
    allowed: Allowed
    documents: Mark
    ended: int


class _Ended:
    """The labels of merged and pruned records, in the order in which they came. They only become more."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.labels: set[int] = set()
        self.marks: dict[str, Mark] = dict.fromkeys(ENDED_BY, NOTHING)


class AllowedLabels:
    """The labels of the filters asked last. Any number of threads, each with its cursor."""

    def __init__(self) -> None:
        self._known: dict[Filter, _Known] = {}
        """Replaced, never changed."""
        self._ended = _Ended()
        self._remembering = threading.Lock()

    def get(
        self, cursor: duckdb.DuckDBPyConnection, filter: Filter, generation: int, rows: Mapping[str, int]
    ) -> Allowed:
        """What the filter leaves; `generation` changes with every commit that may matter (read it before asking), `rows` says
        how many each table had then."""
        known = self._known.get(filter)
        if known is None or known.generation != generation:
            known = self._grown(cursor, filter, known, generation, rows) or self._resolved(
                cursor, filter, generation, rows
            )
            with self._remembering:
                others = [(other, one) for other, one in self._known.items() if other != filter]
                self._known = dict([*others[1 - REMEMBERED :], (filter, known)])
        return known.allowed

    def _resolved(
        self, cursor: duckdb.DuckDBPyConnection, filter: Filter, generation: int, rows: Mapping[str, int]
    ) -> _Known:
        ended = self._follow(cursor, rows)  # before the labels: what ends meanwhile is taken out twice
        documents = mark(cursor, "documents")
        labels = resolve(cursor, filter)
        return _Known(
            generation,
            Allowed(labels, len(labels) == documents.rows),
            documents,
            0 if ended is None else len(ended.order),
        )

    def _follow(self, cursor: duckdb.DuckDBPyConnection, rows: Mapping[str, int]) -> _Ended | None:
        """What has ended; None when a table of it has not simply grown."""
        with self._remembering:
            ended = self._ended
            for table in ENDED_BY:
                if rows[table] == ended.marks[table].rows:
                    continue
                found = new_rows(cursor, table, "namespace, record_id", ended.marks[table], rows[table])
                if found is None:
                    self._ended, self._known = _Ended(), {}
                    return None
                new = [document_label(*row) for row in found[0]]
                ended.labels.update(new)
                ended.order.extend(new)
                ended.marks[table] = found[1]
            return ended

    def _grown(
        self,
        cursor: duckdb.DuckDBPyConnection,
        filter: Filter,
        known: _Known | None,
        generation: int,
        rows: Mapping[str, int],
    ) -> _Known | None:
        """What was known, with what has come since; None when the filter looks at more than documents and what ends them."""
        if known is None or not is_plain(filter):
            return None
        ended = self._follow(cursor, rows)
        fresh = new_rows(cursor, "documents", f"label, {ROW_COLUMNS}", known.documents, rows["documents"])
        if ended is None or fresh is None:
            return None
        new = [label for label, *row in fresh[0] if leaves(filter, row)]
        gone: list[int] = []
        count = len(ended.order)
        if filter.exclude_merged:
            new = [label for label in new if label not in ended.labels]
            gone = ended.order[known.ended : count]
        allowed = known.allowed
        labels = _changed(allowed.labels, new, gone) if new or gone else allowed.labels
        if labels is not allowed.labels or allowed.is_everything != (len(labels) == fresh[1].rows):
            allowed = Allowed(labels, len(labels) == fresh[1].rows)
        return _Known(generation, allowed, fresh[1], count)


def _changed(labels: np.ndarray, new: list[int], gone: list[int]) -> np.ndarray:
    """Sorted labels with some more, and without some that may be among them."""
    if gone:
        labels = np.setdiff1d(labels, np.array(gone, np.int64), assume_unique=True)
    come = np.sort(np.array(new, np.int64))
    places = np.searchsorted(labels, come)
    if len(labels):  # what came while the filter was resolved is in it already
        is_new = labels[np.minimum(places, len(labels) - 1)] != come
        come, places = come[is_new], places[is_new]
    return np.insert(labels, places, come)
