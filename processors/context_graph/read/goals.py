"""Goals as they are stored, and what memories are compared with under them."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from datetime import UTC
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.rules.goals import Goal, north_star_id
from processors.context_graph.rules.views.centre import centre
from processors.context_graph.rules.views.fingerprint import Fingerprint
from storage.statements import execute
from streams.ids import document_label

if TYPE_CHECKING:
    import duckdb

CENTRE_MEMBERS = 256
"""This many of a goal's memories make its centre at most: all of most goals, so that their ids do not matter."""
_MOST_PURPOSES = 256
GOALS = "context_goals"
_COLUMNS = (
    "goal_id, level, goal_text, medoid_id, member_ids, parent_goal_id, confidence, coherence, dominant_embedders, "
    "created_at, parent_alignment"
)


class Purposes:
    """Purposes that will not change any more, by namespace, space, and the members of a goal. Any number of threads.

    Without members it is the provisional one, of a namespace's first memories.
    """

    def __init__(self) -> None:
        self._found: OrderedDict[tuple[str, str, tuple[str, ...]], Fingerprint] = OrderedDict()
        self._central: OrderedDict[tuple[str, str], tuple[Sequence[str], Sequence[str]]] = OrderedDict()
        self._north_stars: dict[str, tuple[str, Goal]] = {}
        self._lock = threading.Lock()

    def known(self, namespace: str, space: str, members: Sequence[str] = ()) -> Fingerprint | None:
        with self._lock:
            return self._found.get((namespace, space, tuple(members)))

    def keep(self, namespace: str, space: str, purpose: Fingerprint, members: Sequence[str] = ()) -> None:
        """Remember it; of very many the oldest goes."""
        with self._lock:
            self._found[namespace, space, tuple(members)] = purpose
            while len(self._found) > _MOST_PURPOSES:
                self._found.popitem(last=False)

    def central(self, namespace: str, goal: Goal) -> list[str]:
        """`central_ids` of a goal's members."""
        members, central = self._central.get((namespace, goal.goal_id), ((), ()))
        if members != goal.member_ids:
            central = tuple(central_ids(namespace, goal.member_ids))
            with self._lock:
                self._central[namespace, goal.goal_id] = goal.member_ids, central
                while len(self._central) > _MOST_PURPOSES:
                    self._central.popitem(last=False)
        return list(central)

    def north_star(self, cursor: duckdb.DuckDBPyConnection, namespace: str) -> Goal | None:
        """The goal that was bootstrapped; its members are read again only when it has changed."""
        row = execute(
            cursor,
            "SELECT event_id FROM context_goals WHERE namespace = ? AND goal_id = ?",
            [namespace, north_star_id(namespace)],
        ).fetchone()
        if row is None:
            return None
        known = self._north_stars.get(namespace)
        if known is not None and known[0] == row[0]:
            return known[1]
        goal = read_north_star(cursor, namespace)
        if goal is not None:
            self._north_stars[namespace] = row[0], goal
        return goal


def read_north_star(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Goal | None:
    """The goal that was bootstrapped; None before that."""
    return read_goal(cursor, namespace, north_star_id(namespace))


def read_goal(cursor: duckdb.DuckDBPyConnection, namespace: str, goal_id: str) -> Goal | None:
    """The goal of this id; None where the namespace has none."""
    found = read_goals_of(cursor, namespace, [goal_id])
    return found[0] if found else None


def read_goals_of(cursor: duckdb.DuckDBPyConnection, namespace: str, goal_ids: Sequence[str]) -> list[Goal]:
    """Those of these goals that the namespace has, in the order of their ids here."""
    rows = execute(
        cursor,
        f"SELECT {_COLUMNS} FROM context_goals WHERE namespace = ? AND goal_id IN (SELECT unnest(?::VARCHAR[]))",
        [namespace, list(goal_ids)],
    ).fetchall()
    found = {row[0]: _goal(row) for row in rows}
    return [found[one] for one in goal_ids if one in found]


def purpose_of(reader: FingerprintReader, purposes: Purposes, goal: Goal) -> Fingerprint | None:
    """The centre of a goal's memories; None where the store has none of them.

    At most CENTRE_MEMBERS of them make it, chosen by their labels, which are hashes. A member that was merged still
    counts as what it said.
    """
    live, space = reader.indexes.spaces.live, reader.spaces
    if (known := purposes.known(reader.namespace, space, goal.member_ids)) is not None:
        return known
    members = [one for one in reader.stored(purposes.central(reader.namespace, goal)) if one is not None]
    if not members:
        return None
    found = centre(members)
    if all((one.vector is None) == (live is None) for one in members):
        purposes.keep(reader.namespace, space, found, goal.member_ids)
    return found


def central_ids(namespace: str, member_ids: Sequence[str], most: int = CENTRE_MEMBERS) -> list[str]:
    """At most this many of these memories, the same whenever it is asked: those of the lowest labels."""
    if len(member_ids) <= most:
        return list(member_ids)
    labels = np.array([document_label(namespace, one) for one in member_ids], np.int64)
    return [member_ids[place] for place in central_places(labels, most)]


def central_places(labels: np.ndarray, most: int) -> np.ndarray:
    """The places of the `most` lowest of (n,) labels, in their order here."""
    if len(labels) <= most:
        return np.arange(len(labels))
    return np.sort(np.argpartition(labels, most)[:most])


def _goal(row: Sequence[Any]) -> Goal:
    goal_id, level, text, medoid_id, members, parent, confidence, coherence, dominant, created_at, alignment = row
    return Goal(
        *(goal_id, level, text, medoid_id, tuple(members), parent, confidence, coherence, tuple(dominant)),
        created_at.replace(tzinfo=UTC),
        alignment,
    )
