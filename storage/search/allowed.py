"""What each filter leaves, remembered: a search after a write looks at the new rows only."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import duckdb
import numpy as np

from storage.search.grown import Mark, counts, mark, new_rows
from storage.search.passages import PassageIndex
from storage.search.planner import Filter, predicate, resolve
from streams.ids import document_label

REMEMBERED = 8
_ENDED_BY = ("merges", "prunes")
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
        if not len(self.labels):
            return labels[:0]
        left: np.ndarray = labels[self.labels[np.minimum(np.searchsorted(self.labels, labels), len(self.labels) - 1)] == labels]
        return left


@dataclass(frozen=True, slots=True)
class _Known:
    """A filter's labels as of a generation, and how far the tables were read for it."""

    generation: int
    allowed: Allowed
    documents: Mark
    ended: tuple[Mark, ...]


class AllowedLabels:
    """The labels of the filters asked last. Any number of threads, each with its cursor."""

    def __init__(self) -> None:
        self._known: dict[Filter, _Known] = {}
        """Replaced, never changed."""
        self._remembering = threading.Lock()

    def get(self, cursor: duckdb.DuckDBPyConnection, filter: Filter, generation: int) -> Allowed:
        """What the filter leaves; `generation` changes with every commit that may matter (read it before asking)."""
        known = self._known.get(filter)
        if known is None or known.generation != generation:
            known = self._grown(cursor, filter, known, generation) or self._resolved(cursor, filter, generation)
            with self._remembering:
                others = [(other, one) for other, one in self._known.items() if other != filter]
                self._known = dict([*others[1 - REMEMBERED :], (filter, known)])
        return known.allowed

    def _resolved(self, cursor: duckdb.DuckDBPyConnection, filter: Filter, generation: int) -> _Known:
        documents, ended = mark(cursor, "documents"), tuple(mark(cursor, table) for table in _ENDED_BY)
        labels = resolve(cursor, filter)
        return _Known(generation, Allowed(labels, len(labels) == documents.rows), documents, ended)

    def _grown(self, cursor: duckdb.DuckDBPyConnection, filter: Filter, known: _Known | None, generation: int) -> _Known | None:
        """What was known, with what has come since; None when the filter looks at more than documents and what ends them."""
        if known is None or not _is_plain(filter):
            return None
        total, *others = counts(cursor, "documents", *_ENDED_BY)
        condition = predicate(filter)
        fresh = new_rows(cursor, "documents", f"label, {condition.sql}", known.documents, total, condition.parameters)
        if fresh is None:
            return None
        labels = known.allowed.labels
        ended: list[Mark] = []
        for table, before, count in zip(_ENDED_BY, known.ended, others, strict=True):
            rows = ([], before) if count == before.rows else new_rows(cursor, table, "namespace, record_id", before, count)
            if rows is None:
                return None
            if filter.exclude_merged and rows[0]:
                labels = np.setdiff1d(labels, [document_label(*row) for row in rows[0]], assume_unique=False)
            ended.append(rows[1])
        if new := [label for label, is_left in fresh[0] if is_left]:
            labels = np.union1d(labels, np.array(new, np.int64))
        return _Known(generation, Allowed(labels, len(labels) == fresh[1].rows), fresh[1], tuple(ended))


def _is_plain(filter: Filter) -> bool:
    return not filter.tags and not filter.entities and filter.valid_at is None and (filter.known_at is None or not filter.exclude_merged)
