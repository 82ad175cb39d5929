"""Which beliefs there are, in memory: what a search filters and ranks by, as arrays that follow the table.

Reading it from DuckDB costs 15 ms with 100,000 beliefs, at every search. `valence_belief_changes` gets a row for each
state that a belief comes into and loses none, so that only what has changed since is read again.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

from storage.search.records.selection import Selection
from storage.statements import execute, marks
from streams.ids import document_label

_COLUMNS = (
    "label, status = 'active' AS is_active, status = 'superseded' AS is_superseded, overall, overall_origin = 'computed' AS is_computed, "
    "epoch_us(created_at) AS created_us, coalesce(epoch_us(valid_from), -9223372036854775807) AS from_us, "
    "coalesce(epoch_us(valid_until), 9223372036854775807) AS until_us"
)
MANY = 2000
"""More changes than this are not looked up one by one: everything is read."""


@dataclass(frozen=True)
class Beliefs:
    """Every belief of a namespace as it was at one moment. Arrays of equal length, in the order of the members' labels
    (sorted).

    Times are microseconds since 1970; a belief without a `valid_from` or `valid_until` holds for ever on that side.
    `overall` does not count tensions in, which only concern those that are `is_computed`.
    """

    members: Selection
    is_active: np.ndarray
    is_superseded: np.ndarray
    overall: np.ndarray
    is_computed: np.ndarray
    created_us: np.ndarray
    from_us: np.ndarray
    until_us: np.ndarray

    def valid_at(self, moment: datetime, *, include_superseded: bool) -> np.ndarray:
        """(n,) whether each may be found at this moment: active and inside its validity; or superseded or expired
        too."""
        now = int(moment.timestamp() * 1_000_000)
        begun: np.ndarray = self.from_us <= now
        if include_superseded:
            return begun & (self.is_active | self.is_superseded)
        return begun & self.is_active & (self.until_us > now)

    @property
    def labels(self) -> np.ndarray:
        return self.members.labels

    def created_at(self, place: int) -> datetime:
        return datetime.fromtimestamp(int(self.created_us[place]) / 1_000_000, UTC)

    def changed(self, other: Beliefs) -> Beliefs:
        """These, with those of `other` in the place of what they were before."""
        at = np.searchsorted(self.labels, other.labels)
        is_known = np.zeros(len(at), bool)
        inside = at < len(self.labels)
        is_known[inside] = self.labels[at[inside]] == other.labels[inside]
        columns: dict[str, np.ndarray] = {}
        for name in _NAMES:  # a few of many: nothing is sorted anew
            column, new = getattr(self, name).copy(), getattr(other, name)
            column[at[is_known]] = new[is_known]
            columns[name] = np.insert(column, at[~is_known], new[~is_known])
        return Beliefs(self.members.joined(at[~is_known], other.labels[~is_known]), **columns)


_NAMES = tuple(name for name in Beliefs.__dataclass_fields__ if name != "members")


class HeldBeliefs:
    """The beliefs of each namespace that was asked for. Any number of threads, each with its cursor."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, Beliefs]] = {}
        """By namespace: how many changes were looked at, and what came of them."""
        self._reading = threading.Lock()

    def of(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Beliefs:
        """Every belief that is committed now."""
        with self._reading:
            [(count,)] = execute(cursor, "SELECT count(*) FROM valence_belief_changes", []).fetchall()
            seen, beliefs = self._known.get(namespace, (0, None))
            if beliefs is None or count < seen or count - seen > MANY:
                beliefs = _read(cursor, "namespace = ?", [namespace])
            elif count > seen:
                beliefs = _follow(cursor, namespace, beliefs, seen, count)
            self._known[namespace] = (count, beliefs)
            return beliefs


def _follow(cursor: duckdb.DuckDBPyConnection, namespace: str, beliefs: Beliefs, seen: int, count: int) -> Beliefs:
    rows = execute(
        cursor, "SELECT namespace, belief_id FROM valence_belief_changes WHERE rowid >= ? AND rowid < ?", [seen, count]
    ).fetchall()
    if len(rows) != count - seen:  # row numbers that are not dense would hide a change
        return _read(cursor, "namespace = ?", [namespace])
    labels = list({document_label(namespace, belief_id) for place, belief_id in rows if place == namespace})
    if not labels:
        return beliefs
    return beliefs.changed(_read(cursor, f"label IN ({marks(labels)})", labels))  # which are of this namespace


def _read(cursor: duckdb.DuckDBPyConnection, where: str, parameters: Sequence[Any]) -> Beliefs:
    return _sorted(execute(cursor, f"SELECT {_COLUMNS} FROM valence_beliefs WHERE {where}", parameters).fetchnumpy())


def _sorted(columns: Any) -> Beliefs:
    labels, *others = columns.values()
    order = np.argsort(labels, kind="stable")
    return Beliefs(Selection(np.asarray(labels)[order]), *(np.asarray(column)[order] for column in others))
