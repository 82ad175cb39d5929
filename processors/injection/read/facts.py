"""Reads the facts that a prompt is given: what a search for it finds, without what the session has already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from processors.injection.read.known import read_known, read_private
from processors.injection.rules.floor import Candidate, facts_above_floor
from processors.memory.live_search import search_live
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.hits import SearchHit

if TYPE_CHECKING:
    import duckdb

HITS = 50
"""Enough that what the session said itself does not take the place of what others said."""


def read_facts(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, session_id: str
) -> list[tuple[SearchHit, float]]:
    """The hits that are worth giving with the prompt that the query is of, each with its confidence; the best first.

    The query searches everything, with a limit of HITS: what the session said is compared, and never given.
    """
    namespace = query.filter.namespace
    hits = search_live(cursor, indexes, query).hits
    stating = {hit.record_id: {hit.record_id, *(record_id for _, record_id in hit.also)} for hit in hits}
    records = sorted({record_id for stated in stating.values() for record_id in stated})
    private = read_private(cursor, namespace, records)
    known = read_known(cursor, namespace, session_id, records)
    open_hits = [hit for hit in hits if private.isdisjoint(stating[hit.record_id])]
    in_sight = [_candidate(hit) for hit in open_hits if not known.isdisjoint(stating[hit.record_id])]
    others = {hit.record_id: hit for hit in open_hits if known.isdisjoint(stating[hit.record_id])}
    documents = len(indexes.records.allowed(cursor, query.filter).labels)
    facts = facts_above_floor(query.text, [_candidate(hit) for hit in others.values()], in_sight, documents)
    return [(others[fact.record_id], fact.confidence) for fact in facts]


def _candidate(hit: SearchHit) -> Candidate:
    raw = {side: value for side, (_, value) in hit.sides.items()}
    return Candidate(hit.record_id, hit.text, raw.get("late"), raw.get("keyword"))
