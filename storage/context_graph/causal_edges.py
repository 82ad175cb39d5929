"""The causal edges of a namespace in memory, as arrays that follow the tables.

An inference looks at the edges of hundreds of memories, hop by hop: to ask DuckDB at each hop costs 25 to 50 ms.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb
import numpy as np

from storage.followers import EventFollower
from storage.search.records.id_table import IdTable
from storage.statements import execute, marks
from streams.event_types.context_edges import EDGES_CHANGED, EDGES_FOUND
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.ids import document_label

_EDGES = (
    "SELECT source_id, target_id, weight, confidence, is_removed OR weight = 0 FROM context_edges "
    "WHERE namespace = ? AND kind = 'causal'"
)


class CausalStep(NamedTuple):
    """An edge from a cause to an effect."""

    source_id: str
    target_id: str
    weight: float
    confidence: float


@dataclass(frozen=True)
class _Successors:
    """label of a merged memory -> that of the one that stands for it now, and the other way."""

    of: Mapping[int, int] = field(default_factory=dict)
    members: Mapping[int, Sequence[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class CausalEdges:
    """The causal edges of a namespace, neither removed nor withdrawn.

    (n,) labels of causes and effects as they were found, weights and confidences, sorted by cause; `by_effect`: the
    places in the order of the effects.
    """

    ids: IdTable
    causes: np.ndarray
    effects: np.ndarray
    weights: np.ndarray
    confidences: np.ndarray
    by_effect: np.ndarray
    successors: _Successors

    def steps(self, namespace: str, memory_ids: Iterable[str], *, is_ahead: bool) -> list[CausalStep]:
        """The edges that go out from these memories, or come in at them, ordered by their ends.

        Of a merged memory they are those of the one that stands for it; two of them may then have the same ends.
        """
        places = self._places([document_label(namespace, one) for one in memory_ids], is_ahead)
        living = self.successors.of
        ends = [
            [living.get(label, label) for label in labels[places].tolist()] for labels in (self.causes, self.effects)
        ]
        names = {label: self.ids.get(label) or "" for label in {*ends[0], *ends[1]}}
        values = (self.weights[places].tolist(), self.confidences[places].tolist())
        return sorted(
            CausalStep(names[one], names[other], weight, confidence)
            for one, other, weight, confidence in zip(*ends, *values, strict=True)
        )

    def _places(self, heads: Sequence[int], is_ahead: bool) -> np.ndarray:
        """The places of the edges at these memories and at those that became part of them."""
        labels = np.array([one for head in heads for one in (head, *self.successors.members.get(head, ()))], np.int64)
        near = self.causes if is_ahead else self.effects[self.by_effect]
        bounds = zip(np.searchsorted(near, labels), np.searchsorted(near, labels, side="right"), strict=True)
        found = np.concatenate([np.arange(start, stop) for start, stop in bounds] or [np.empty(0, np.int64)])
        return found if is_ahead else self.by_effect[found]


class CausalFollower(EventFollower[CausalEdges]):
    """The causal edges of each large namespace, and of those in which causes were asked for."""

    def load(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> CausalEdges:
        ids, rows = IdTable(), execute(cursor, f"{_EDGES} AND NOT is_removed AND weight > 0", [namespace]).fetchall()
        successors = _read_successors(cursor, namespace, ids)
        return _sorted(ids, _columns(namespace, ids, rows), successors)

    def update(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, view: CausalEdges, rows: Sequence[tuple[Any, ...]]
    ) -> CausalEdges:
        changing = [event_id for event_type, event_id in rows if event_type in (EDGES_FOUND, EDGES_CHANGED)]
        is_merged = any(event_type == MEMORIES_MERGED for event_type, _ in rows)
        if not changing and not is_merged:
            return view
        successors = _read_successors(cursor, namespace, view.ids) if is_merged else view.successors
        query = f"{_EDGES} AND event_id IN ({marks(changing)})"
        changed = execute(cursor, query, [namespace, *changing]).fetchall() if changing else []
        return _changed(namespace, view, changed, successors)


def _changed(
    namespace: str, view: CausalEdges, rows: Sequence[tuple[Any, ...]], successors: _Successors
) -> CausalEdges:
    """The edges with these as they are now in the place of what they were."""
    causes, effects, *_ = _columns(namespace, view.ids, rows)
    pairs = set(zip(causes.tolist(), effects.tolist(), strict=True))
    near = np.flatnonzero(np.isin(view.causes, causes) & np.isin(view.effects, effects))
    known = zip(near.tolist(), view.causes[near].tolist(), view.effects[near].tolist(), strict=True)
    gone = [place for place, cause, effect in known if (cause, effect) in pairs]
    kept = (np.delete(column, gone) for column in (view.causes, view.effects, view.weights, view.confidences))
    new = _columns(namespace, view.ids, [row for row in rows if not row[-1]])
    return _sorted(view.ids, map(np.concatenate, zip(kept, new, strict=True)), successors)


def _columns(namespace: str, ids: IdTable, rows: Sequence[tuple[Any, ...]]) -> list[np.ndarray]:
    """Labels of causes and of effects, weights and confidences of rows of _EDGES."""
    ends = ids.add([(namespace, end) for row in rows for end in row[:2]])
    values = np.array([row[2:4] for row in rows], np.float64).reshape(-1, 2)
    return [ends[::2], ends[1::2], values[:, 0], values[:, 1]]


def _sorted(ids: IdTable, columns: Iterable[np.ndarray], successors: _Successors) -> CausalEdges:
    """`columns`: as `_columns` gives them."""
    causes, effects, weights, confidences = columns
    order = np.argsort(causes, kind="stable")
    by_effect = np.argsort(effects[order], kind="stable")
    return CausalEdges(ids, causes[order], effects[order], weights[order], confidences[order], by_effect, successors)


def _read_successors(cursor: duckdb.DuckDBPyConnection, namespace: str, ids: IdTable) -> _Successors:
    query = "SELECT memory_id, successor_id FROM context_successors WHERE namespace = ?"
    rows = execute(cursor, query, [namespace]).fetchall()
    labels = ids.add([(namespace, one) for row in rows for one in row]).tolist()
    of, members = dict(zip(labels[::2], labels[1::2], strict=True)), defaultdict[int, list[int]](list)
    for member, head in of.items():
        members[head].append(member)
    return _Successors(of, dict(members))
