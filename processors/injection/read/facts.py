"""Reads the facts that a prompt is given: what a search finds and the session lacks.

Of what a later memory changes that one is given, never what it was before by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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

    `role`: of a turn, `user` or `assistant`. `against`: the text that it changes, where that one fits the prompt too.
    """

    hit: SearchHit
    confidence: float
    role: str | None
    against: str | None = None


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
    fitting = [(others[fact.record_id], fact.confidence) for fact in facts]
    given = _as_of_now(fitting, {record_id: hit for hit in hits for record_id in stating[hit.record_id]}, others)
    said = read_turns(cursor, turns_among(fact.hit for fact in given))
    return [fact._replace(role=said.get(fact.hit.label, {}).get("role")) for fact in given]


def _as_of_now(
    fitting: Sequence[tuple[SearchHit, float]], stated: Mapping[str, SearchHit], others: Mapping[str, SearchHit]
) -> list[GivenFact]:
    """The hits that fit, each once, and in the place of one that a later memory changes that one.

    Neither of the two where the session has the later one, or may not be told. `stated`: by record the hit that states
    the same; `others`: the hits that may be given, by their records.
    """
    found: dict[str, GivenFact] = {}
    for hit, confidence in fitting:
        latest = _latest(hit, stated)
        if latest is None or latest.record_id not in others:
            continue
        known, against = found.get(latest.record_id), None if latest is hit else hit.text
        if known is None:
            found[latest.record_id] = GivenFact(latest, confidence, None, against)
        elif known.against is None:
            found[latest.record_id] = known._replace(against=against)
    return list(found.values())


def _latest(hit: SearchHit, stated: Mapping[str, SearchHit]) -> SearchHit | None:
    """What changes a hit, or what changes that, to the end; None where that is not among the hits.

    Then it is not to be told. Two that are in a tension, of which neither changes the other, are each the latest.
    """
    seen = {hit.record_id}
    while True:
        later = None
        for name in hit.disputed_by:  # the latest first
            other = stated.get(name[1])
            if other is None and name not in hit.tensions:
                return None
            if other is not None and any(stated.get(record_id) is hit for _, record_id in other.earlier):
                later = other
                break
        if later is None or later.record_id in seen:
            return hit
        seen.add(later.record_id)
        hit = later


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
