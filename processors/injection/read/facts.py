"""Reads the facts that a prompt is given: what a search finds and the session lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from processors.injection.read.known import read_known, read_private
from processors.injection.rules.floor import CandidateFact, facts_above_floor
from processors.memory.read.live_search import search_live
from storage.search.captured import CAPTURED, TOOLSET, read_turns, reading, turns_among, turns_asked
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.hits import SearchHit

if TYPE_CHECKING:
    import duckdb

HITS = 50
"""Enough that what the session said itself does not take the place of what others said."""


class GivenFact(NamedTuple):
    """A hit that is worth giving, and how sure that is (0 to 1).

    `role`: of a turn, `user` or `assistant`.
    """

    hit: SearchHit
    confidence: float
    role: str | None


def read_facts(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query, session_id: str) -> list[GivenFact]:
    """The hits that are worth giving with the prompt of the query, with their confidence; the best first.

    The query names the namespace, with a limit of HITS. Turns of all sessions are searched too: what the session said
    is compared, and never given.
    """
    namespace = query.filter.namespace
    query = replace(query, with_turns=True)
    hits = search_live(cursor, indexes, query).hits
    stating = {hit.record_id: {hit.record_id, *(record_id for _, record_id in hit.also)} for hit in hits}
    records = sorted({record_id for stated in stating.values() for record_id in stated})
    private = read_private(cursor, namespace, records)
    known = read_known(cursor, namespace, session_id, records)
    open_hits = [hit for hit in hits if private.isdisjoint(stating[hit.record_id])]
    documents = _documents(cursor, indexes, query)
    in_sight = [_candidate(hit, documents) for hit in open_hits if not known.isdisjoint(stating[hit.record_id])]
    others = {hit.record_id: hit for hit in open_hits if known.isdisjoint(stating[hit.record_id])}
    facts = facts_above_floor(query.text, [_candidate(hit, documents) for hit in others.values()], in_sight)
    said = read_turns(cursor, turns_among(others[fact.record_id] for fact in facts))
    given = ((others[fact.record_id], fact.confidence) for fact in facts)
    return [GivenFact(hit, confidence, said.get(hit.label, {}).get("role")) for hit, confidence in given]


def _documents(cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, query: Query) -> dict[bool, int]:
    """How many memories, and how many turns (True), are searched: each of the two has words of its own."""
    counts = {False: len(indexes.records.allowed(cursor, query.filter).labels)}
    if (turns := turns_asked(indexes, query)) is not None:
        with reading(cursor, CAPTURED):
            counts[True] = len(turns.records.allowed(cursor, query.filter).labels)
    return counts


def _candidate(hit: SearchHit, documents: Mapping[bool, int]) -> CandidateFact:
    raw = {side: value for side, (_, value) in hit.sides.items()}
    among = documents[hit.toolset == TOOLSET]
    return CandidateFact(hit.record_id, hit.text, among, raw.get("late"), raw.get("keyword"))
