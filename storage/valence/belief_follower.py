"""The beliefs of a namespace in memory, as arrays that follow the table.

A search filters and ranks by them. Reading them from DuckDB costs 15 ms with 100,000 beliefs, at every search.
`valence_belief_changes` gets a row for each state that a belief comes into and loses none, so that only what has
changed since is read again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

from storage.followers import Follower
from storage.search.records.selection import Selection
from storage.statements import execute, marks
from streams.ids import document_label

_COLUMNS = (
    "label, status = 'active' AS is_active, status = 'superseded' AS is_superseded, overall, "
    "overall_origin = 'computed' AS is_computed, epoch_us(created_at) AS created_us, "
    "coalesce(epoch_us(valid_from), -9223372036854775807) AS from_us, "
    "coalesce(epoch_us(valid_until), 9223372036854775807) AS until_us"
)


@dataclass(frozen=True)
class Beliefs:
    """Every belief of a namespace as it was at one moment, as arrays of equal length.

    Their order is that of the members' labels, which are sorted.

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
        """(n,) whether each may be found at this moment.

        It is active and inside its validity; with `include_superseded` it may be superseded or expired, too.
        """
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


class BeliefFollower(Follower[Beliefs]):
    """The beliefs of each namespace that was searched."""

    table = "valence_belief_changes"
    columns = "belief_id"

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Beliefs:
        return _read(cursor, "namespace = ?", [namespace])

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: Beliefs, rows: Sequence[tuple[Any, ...]]
    ) -> Beliefs:
        labels = list({document_label(namespace, belief_id) for (belief_id,) in rows})
        return view.changed(_read(cursor, f"label IN ({marks(labels)})", labels))


def _read(cursor: duckdb.DuckDBPyConnection, where: str, parameters: Sequence[Any]) -> Beliefs:
    return _sorted(execute(cursor, f"SELECT {_COLUMNS} FROM valence_beliefs WHERE {where}", parameters).fetchnumpy())


def _sorted(columns: Any) -> Beliefs:
    labels, *others = columns.values()
    order = np.argsort(labels, kind="stable")
    return Beliefs(Selection(np.asarray(labels)[order]), *(np.asarray(column)[order] for column in others))
