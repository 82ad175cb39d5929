"""Reads the ego of a session: the purposes of its last memories, and of those that it recalled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.read.drift import DriftCache, DriftReader
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.state import IN_SESSION
from processors.context_graph.read.teleology import purpose, purpose_vectors
from processors.context_graph.rules.drift import LEAST, WINDOW
from processors.context_graph.rules.ego import (
    MOST_TRAJECTORY,
    RECALLED,
    STATUSES,
    Ego,
    alike,
    identity_coherence,
    identity_status,
    running_purpose,
)
from storage.statements import execute

if TYPE_CHECKING:
    from processors.context_graph.read.fingerprints import FingerprintReader
    from processors.context_graph.rules.views.fingerprint import Fingerprint


def read_ego(reader: FingerprintReader, purposes: Purposes, cache: DriftCache, session_id: str) -> Ego:
    """The ego of a session; of `default` the whole namespace's.

    With fewer than LEAST memories, and before a goal was found, it is taken to be itself.
    """
    stored, count = _stored(reader, session_id)
    recalled = _recalled(reader, session_id)
    goal = purposes.north_star(reader.cursor, reader.namespace)
    coherence, status = 1.0, STATUSES[0]
    if goal is None:
        towards = purpose(reader, purposes).centre
        found = dict(_provisional(reader, [*stored, *recalled], towards))
    else:
        drift = DriftReader(reader, purposes, cache, goal)
        found = drift.purpose_vectors([*stored, *recalled])
        if len(stored) >= LEAST and (against := drift.against_goal(stored)) is not None:
            coherence = identity_coherence(against[0], has_errors=against[1].has_errors)
            status = identity_status(against[0].severity)
    own = running_purpose([found[one] for one in stored if one in found])
    actions = alike(own, [found[one] for one in recalled if one in found])
    return Ego(tuple(own.tolist()), coherence, status, actions, min(count, MOST_TRAJECTORY), goal is None)


def _stored(reader: FingerprintReader, session_id: str) -> tuple[list[str], int]:
    """The last WINDOW memories of a session, oldest first, and how many it has."""
    stored = f"FROM context_memories WHERE namespace = $1 AND merged_from IS NULL AND {IN_SESSION}"
    about = [reader.namespace, session_id]
    last = f'SELECT memory_id {stored} ORDER BY "offset" DESC, idx DESC LIMIT {WINDOW}'
    rows = execute(reader.cursor, last, about).fetchall()
    counted = execute(
        reader.cursor, f"SELECT count(*) {stored}", about
    ).fetchone()  # apart: a window reads all in order
    return [str(memory_id) for (memory_id,) in reversed(rows)], counted[0] if counted else 0


def _recalled(reader: FingerprintReader, session_id: str) -> list[str]:
    """The memories that searches of a session returned last, the best ones first."""
    rows = execute(
        reader.cursor,
        "SELECT memory_id FROM context_recalls WHERE namespace = $1 "
        f"AND {IN_SESSION} ORDER BY recalled_at DESC, event_id, rank LIMIT {RECALLED}",
        [reader.namespace, session_id],
    ).fetchall()
    return [str(memory_id) for (memory_id,) in rows]


def _provisional(
    reader: FingerprintReader, ids: Sequence[str], towards: Fingerprint | None
) -> list[tuple[str, np.ndarray]]:
    texts = [one for one in reader.stored(ids) if one is not None]
    return [(str(one.memory_id), row) for one, row in zip(texts, purpose_vectors(towards, texts), strict=True)]
