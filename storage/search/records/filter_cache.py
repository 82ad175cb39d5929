"""Cache of the labels that filters leave. Rows are append-only, so a search after a write reads the new rows only."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

import duckdb
import numpy as np

from storage.append_only import NOTHING, Mark, mark, new_rows
from storage.search.records.filter import ROW_COLUMNS, Filter, is_plain, leaves, resolve
from storage.search.records.label_map import ABSENT, places_in
from storage.search.records.passages import PassageIndex
from streams.ids import document_label

CACHED_FILTERS = 8
ENDED_BY = {"merges": "record_id", "prunes": "record_id", "corrections": "record_id", "context_ends": "memory_id"}
"""Tables whose rows take a record out of what `exclude_merged` leaves, and the column of its id."""


@dataclass(slots=True)
class AllowList:
    """The labels that a filter leaves, sorted, int64. `is_everything`: no document is left out."""

    filter: Filter
    labels: np.ndarray
    is_everything: bool
    _with_passages: tuple[int, np.ndarray] | None = None

    @property
    def restriction(self) -> np.ndarray | None:
        """The labels, None when they restrict nothing. None is a hint: hits are read under the filter's namespace."""
        return None if self.is_everything else self.labels

    def with_passages(self, passages: PassageIndex) -> np.ndarray | None:
        """The restriction, with all passages of the documents in it."""
        if self.is_everything or not len(passages):
            return self.restriction
        known = self._with_passages
        if known is None or known[0] != len(passages):
            known = self._with_passages = len(passages), passages.with_passages(self.labels)
        return known[1]

    def of(self, labels: np.ndarray) -> np.ndarray:
        """Those of some labels that the filter leaves, in their order."""
        left: np.ndarray = labels[places_in(self.labels, labels) != ABSENT]
        return left


@dataclass(frozen=True, slots=True)
class _Entry:
    """A filter's labels as of a generation, the documents read for it, and how many records had ended."""

    generation: int
    allowed: AllowList
    documents: Mark
    ended: int


class _EndedRecords:
    """The labels of merged and pruned records, in the order in which they came; append-only."""

    def __init__(self) -> None:
        self.order: list[int] = []
        self.labels: set[int] = set()
        self.marks: dict[str, Mark] = dict.fromkeys(ENDED_BY, NOTHING)


class FilterCache:
    """The labels of the last filters. Any number of threads, each with its cursor."""

    def __init__(self) -> None:
        self._entries: dict[Filter, _Entry] = {}
        """Replaced, never changed."""
        self._ended = _EndedRecords()
        self._lock = threading.Lock()

    def get(
        self, cursor: duckdb.DuckDBPyConnection, filter: Filter, generation: int, rows: Mapping[str, int]
    ) -> AllowList:
        """What the filter leaves. `generation` changes with every commit that may matter (read it before asking);
        `rows`: how many each table had then."""
        known = self._entries.get(filter)
        if known is None or known.generation != generation:
            known = self._refreshed(cursor, filter, known, generation, rows) or self._resolved(
                cursor, filter, generation, rows
            )
            with self._lock:
                others = [(other, one) for other, one in self._entries.items() if other != filter]
                self._entries = dict([*others[1 - CACHED_FILTERS :], (filter, known)])
        return known.allowed

    def _resolved(
        self, cursor: duckdb.DuckDBPyConnection, filter: Filter, generation: int, rows: Mapping[str, int]
    ) -> _Entry:
        ended = self._follow(cursor, rows)  # before the labels: what ends meanwhile is taken out twice
        documents = mark(cursor, "documents")
        labels = resolve(cursor, filter)
        return _Entry(
            generation,
            AllowList(filter, labels, len(labels) == documents.rows),
            documents,
            0 if ended is None else len(ended.order),
        )

    def _follow(self, cursor: duckdb.DuckDBPyConnection, rows: Mapping[str, int]) -> _EndedRecords | None:
        """The records that ended until now; None when one of the tables has lost rows."""
        with self._lock:
            ended = self._ended
            for table, column in ENDED_BY.items():
                if rows[table] == ended.marks[table].rows:
                    continue
                found = new_rows(cursor, table, f"namespace, {column}", ended.marks[table], rows[table])
                if found is None:
                    self._ended, self._entries = _EndedRecords(), {}
                    return None
                new = [document_label(*row) for row in found[0]]
                ended.labels.update(new)
                ended.order.extend(new)
                ended.marks[table] = found[1]
            return ended

    def _refreshed(
        self,
        cursor: duckdb.DuckDBPyConnection,
        filter: Filter,
        known: _Entry | None,
        generation: int,
        rows: Mapping[str, int],
    ) -> _Entry | None:
        """The entry with the rows that came since; None when those alone do not decide."""
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
            allowed = AllowList(filter, labels, len(labels) == fresh[1].rows)
        return _Entry(generation, allowed, fresh[1], count)


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
