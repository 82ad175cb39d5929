"""The search of what still holds: no record that was superseded, merged, archived or deprecated."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from processors.memory.read.earlier import known_ended
from processors.memory.read.standing import read_successors, with_disputes
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.hits import SearchHit, SearchResult
from storage.search.search import Keywords, ranked
from streams.ids import document_label

if TYPE_CHECKING:
    import duckdb


class LiveList:
    """What a search has found and still holds, best first; rows are read as far as they are asked for.

    Each names the open tensions that it is in. A filter with a moment says itself what was valid then; then a hit says
    what holds in its place now. `total` counts what has ended where it stands behind what was read.
    """

    def __init__(
        self, cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: Keywords | None = None
    ) -> None:
        self._cursor, self._indexes, self._query = cursor, indexes, query
        self._ranked = ranked(cursor, indexes, query, prefetched)
        self._ended = 0
        self.degraded = self._ranked.degraded

    @property
    def total(self) -> int:
        return self._ranked.total - self._ended

    def read(self, count: int) -> list[SearchHit]:
        """Read the next `count` hits, or all that are left."""
        cursor, indexes, namespace = self._cursor, self._indexes, self._query.filter.namespace
        if self._query.filter.valid_at is not None:
            return _with_successors(cursor, indexes, namespace, self._ranked.read(count))
        hits: list[SearchHit] = []
        while len(hits) < count and (found := self._ranked.read(count - len(hits))):
            living = _living(cursor, indexes, namespace, found)
            self._ended += len(found) - len(living)
            hits += living
        return with_disputes(cursor, indexes.records.clusters, namespace, hits)


def search_live(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, prefetched: Keywords | None = None
) -> SearchResult:
    """Search what still holds: the first hits of a `LiveList`."""
    found = LiveList(cursor, indexes, query, prefetched)
    hits = found.read(query.limit)
    return SearchResult(hits, found.total, found.degraded)


def _living(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, namespace: str, found: Sequence[SearchHit]
) -> list[SearchHit]:
    """The hits without what has ended."""
    named = {
        identity
        for hit in found
        for identity in (hit.record_id, *(other for _, other in (*hit.also, *hit.disputed_by)))
    }
    ended = known_ended(cursor, indexes.records, namespace, named)
    left = (_without(cursor, indexes, namespace, hit, ended) for hit in found)
    return [hit for hit in left if hit is not None]


def _with_successors(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, namespace: str, hits: Sequence[SearchHit]
) -> list[SearchHit]:
    """The hits, each with what holds in its place now; what was in tension then may not be now."""
    ids = [hit.record_id for hit in hits]
    successors = read_successors(cursor, indexes.records.documents, namespace, ids) if ids else {}
    return [replace(hit, superseded_by=successors.get(hit.record_id)) for hit in hits]


def _without(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, namespace: str, hit: SearchHit, ended: Collection[str]
) -> SearchHit | None:
    """The hit without the records that have ended; None where nothing is left.

    Another record that states the same takes the place of one that has ended.
    """
    also, disputed_by = (
        [(kind, identity) for kind, identity in others if identity not in ended]
        for others in (hit.also, hit.disputed_by)
    )
    if hit.record_id not in ended:
        is_same = len(also) == len(hit.also) and len(disputed_by) == len(hit.disputed_by)
        return hit if is_same else replace(hit, also=also, disputed_by=disputed_by)
    if not also:
        return None
    label = document_label(namespace, also[0][1])
    other = indexes.records.documents.hits(cursor, namespace, [label]).get(label)
    return other and replace(
        other, score=hit.score, sides=hit.sides, parts=hit.parts, also=also[1:], times=min(hit.times, len(also))
    )
