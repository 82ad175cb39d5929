"""Reads the state by which Context Graph searches: agreement of views, modulators, broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import orjson

from processors.context_graph.rules.agreement import agreement
from processors.context_graph.rules.consciousness import HISTORY
from processors.context_graph.rules.modulators import ADJUSTED, Levels
from processors.context_graph.rules.oscillators import COUPLING, Synchrony, settled
from processors.context_graph.rules.workspace import BROADCAST_MS, WHOLE, Contender
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

IN_SESSION = f"($2 = '{WHOLE}' OR session_id = $2)"
"""The rows of a session, of `default` those of the whole namespace; the session is the second parameter."""
MOST_RECALLS = 8
"""Of the recalls before these nothing would be left in the agreement."""


class RecallViews(NamedTuple):
    """What one search returned. `alignments`: (results, 13), best first, NaN where a view says nothing."""

    at: datetime
    alignments: np.ndarray


@dataclass(frozen=True, slots=True)
class Coupled:
    """The oscillators of a session. `last_recall_at`: UTC without a zone, None before the first one."""

    coupling: float
    agreement: np.ndarray
    synchrony: Synchrony
    last_recall_at: datetime | None


@dataclass(frozen=True, slots=True)
class Workspace:
    """What competes in a session, and what was broadcast last; times are UTC without a zone."""

    candidates: Sequence[Contender] = ()
    memory_id: str | None = None
    score: float | None = None
    broadcast_at: datetime | None = None
    broadcasts: int = 0

    def is_broadcasting(self, now: datetime) -> bool:
        """Whether the last broadcast still goes on."""
        return self.broadcast_at is not None and now - self.broadcast_at < timedelta(milliseconds=BROADCAST_MS)


def read_recalls(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> list[RecallViews]:
    """The last MOST_RECALLS searches of a session, oldest first; of `default` those of all sessions."""
    rows = execute(
        cursor,
        "WITH last AS (SELECT event_id FROM context_recalls WHERE namespace = $1 AND rank = 1 "
        f"AND alignments IS NOT NULL AND {IN_SESSION} "
        f"ORDER BY recalled_at DESC, event_id LIMIT {MOST_RECALLS}) "
        "SELECT any_value(recalled_at), list(alignments ORDER BY rank) FROM context_recalls "
        "WHERE namespace = $1 AND event_id IN (FROM last) AND alignments IS NOT NULL "
        "GROUP BY event_id ORDER BY 1, event_id",
        [namespace, session_id],
    ).fetchall()
    return [RecallViews(at, np.array(alignments, np.float64)) for at, alignments in rows]


def read_coupled(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, now: datetime) -> Coupled:
    """The oscillators now: settled under the agreement of the last recalls, turned since then."""
    row = execute(cursor, "SELECT coupling FROM context_couplings WHERE namespace = ?", [namespace]).fetchone()
    coupling = COUPLING if row is None else float(row[0])
    recalls = read_recalls(cursor, namespace, session_id)
    agreed = agreement([recall.alignments for recall in recalls])
    found, last = settled(coupling, agreed), recalls[-1].at if recalls else None
    elapsed_s = 0.0 if last is None else max(0.0, (now - last).total_seconds())
    return Coupled(coupling, agreed, found.turned(elapsed_s), last)


def read_levels(cursor: duckdb.DuckDBPyConnection, namespace: str, now: datetime) -> Levels:
    """The levels of the modulators now; their baselines where nothing has adjusted them."""
    row = execute(
        cursor,
        f"SELECT {', '.join(ADJUSTED)}, adjusted_at FROM context_modulators WHERE namespace = ?",
        [namespace],
    ).fetchone()
    return Levels() if row is None else Levels(*row[:-1]).later((now - row[-1]).total_seconds())


def read_workspace(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> Workspace:
    """The workspace of a session."""
    row = execute(
        cursor,
        "SELECT candidates, memory_id, score, broadcast_at, broadcasts FROM context_workspaces "
        "WHERE namespace = ? AND session_id = ?",
        [namespace, session_id],
    ).fetchone()
    return (
        Workspace() if row is None else Workspace([Contender.of_json(each) for each in orjson.loads(row[0])], *row[1:])
    )


def read_learning_scores(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str) -> list[tuple[str, float]]:
    """Modality and learning score of the last memories that were measured, oldest first."""
    rows = execute(
        cursor,
        "SELECT modality, learning_score FROM context_memories WHERE namespace = $1 "
        f'AND learning_score IS NOT NULL AND {IN_SESSION} ORDER BY "offset" DESC, idx DESC LIMIT {HISTORY}',
        [namespace, session_id],
    ).fetchall()
    return [(str(modality), float(score)) for modality, score in reversed(rows)]
