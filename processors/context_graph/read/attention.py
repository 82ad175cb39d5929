"""What modulators and the last broadcast make of a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from processors.context_graph.read.state import read_levels, read_workspace
from processors.context_graph.rules.attention import LEAST_POOL, POOL, Pool, effective_results, near_enough, order
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.modulators import Levels
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.workspace import CONTEXT_S
from storage.statements import execute

if TYPE_CHECKING:
    import duckdb

    from processors.context_graph.read.fingerprints import FingerprintReader
    from processors.context_graph.rules.views.fingerprint import Fingerprint
    from storage.search.query import Query
    from storage.search.records.hits import SearchHit


MODULATORS, WORKSPACES = "context_modulators", "context_workspaces"


@dataclass(frozen=True, slots=True)
class Attention:
    """The levels of the modulators, and the memory that was broadcast in the last five minutes."""

    levels: Levels = field(default_factory=Levels)
    broadcast_id: str | None = None

    @property
    def is_neutral(self) -> bool:
        """Whether a search ranks as if there were neither."""
        return self.levels.is_baseline and self.broadcast_id is None

    def near_enough(self, least: float) -> float:
        """The similarity that is asked for in place of this one."""
        return near_enough(least, self.levels)

    def deep(self, query: Query) -> Query:
        """The query for as many hits as are put in order anew."""
        return query if self.is_neutral else replace(query, limit=max(query.limit, POOL), pool=query.pool_size)


NEUTRAL = Attention()


def read_attention(cursor: duckdb.DuckDBPyConnection, namespace: str, session_id: str, now: datetime) -> Attention:
    """Those of a session now; `now` is UTC without a zone."""
    workspace = read_workspace(cursor, namespace, session_id)
    at = workspace.broadcast_at
    is_near = at is not None and now - at <= timedelta(seconds=CONTEXT_S)
    return Attention(read_levels(cursor, namespace, now), workspace.memory_id if is_near else None)


def attended(
    reader: FingerprintReader, attention: Attention, hits: Sequence[SearchHit], asked: Callable[[], Fingerprint]
) -> tuple[list[SearchHit], float | None]:
    """The hits in the order that attention gives them, and how many stand behind the answer.

    The number is None where attention is neutral. `asked`: makes the query's fingerprint, which serotonin alone needs.
    """
    if attention.is_neutral or len(hits) < LEAST_POOL:
        return list(hits), None
    first = list(hits[:POOL])
    scores = np.array([hit.score for hit in first])
    aligned = _aligned(reader, attention, first, asked)
    pool = Pool(scores, aligned, [hit.session_id for hit in first], _beside(reader, attention, first))
    places = order(pool, attention.levels)
    return [first[place] for place in places] + list(hits[POOL:]), effective_results(scores, attention.levels.dopamine)


def _aligned(
    reader: FingerprintReader, attention: Attention, hits: Sequence[SearchHit], asked: Callable[[], Fingerprint]
) -> np.ndarray | None:
    """[n, 13] alignments of the hits with the query; None where serotonin is at its baseline."""
    if Levels(serotonin=attention.levels.serotonin).is_baseline:
        return None
    found = reader.stored([hit.record_id for hit in hits])
    if any(one is None for one in found):
        return None
    return alignments(asked(), [one for one in found if one is not None]).astype(np.float64)


def _beside(reader: FingerprintReader, attention: Attention, hits: Sequence[SearchHit]) -> np.ndarray | None:
    """[n]: how many places each hit is from the broadcast memory in its session, NaN in another one."""
    if attention.broadcast_id is None:
        return None
    rows = execute(
        reader.cursor,
        'SELECT record_id, row_number() OVER (ORDER BY "offset", label) FROM documents '
        "WHERE namespace = $1 AND toolset = $2 AND session_id = (SELECT session_id FROM documents "
        "WHERE namespace = $1 AND toolset = $2 AND record_id = $3)",
        [reader.namespace, TOOLSET, attention.broadcast_id],
    ).fetchall()
    places = dict(rows)
    own = places.get(attention.broadcast_id)
    if own is None:
        return None
    return np.array([abs(places[hit.record_id] - own) if hit.record_id in places else np.nan for hit in hits])
