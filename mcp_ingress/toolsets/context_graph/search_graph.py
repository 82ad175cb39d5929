"""search_graph: find memories by meaning and words, each with how near it is to the query."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any, NamedTuple

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call, Search
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.other_records import CHANGED, REPEATED, changed, repeated
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.context_graph.reader import reader_of
from mcp_ingress.toolsets.context_graph.recalls import leave_miss, leave_recall
from mcp_ingress.toolsets.context_graph.session_state import moment
from processors.context_graph.read.attention import MODULATORS, NEUTRAL, WORKSPACES, Attention, attended, read_attention
from processors.context_graph.read.calibration import known_calibration
from processors.context_graph.read.corrections import CORRECTIONS, deep_enough, read_correction, reordered
from processors.context_graph.read.drift import DriftCache, DriftReader
from processors.context_graph.read.edges import edges_among, may_lead_on
from processors.context_graph.read.fingerprints import FingerprintReader, UnencodedText
from processors.context_graph.read.goals import Purposes, read_north_star
from processors.context_graph.read.nearness import Nearness, nearness_of_hits
from processors.context_graph.read.surroundings import is_repeated, widened
from processors.context_graph.read.teleology import OF_A_VIEW, mean_alignment, purpose, purpose_vectors
from processors.context_graph.rules.chains import chains
from processors.context_graph.rules.corrections import NONE, REORDERED, Correction
from processors.context_graph.rules.memories import TOOLSET
from processors.context_graph.rules.strategies import dominant_views, purpose_similarity
from processors.context_graph.rules.views.alignment import alignments
from processors.context_graph.rules.views.catalogue import COUNT
from processors.context_graph.rules.views.fingerprint import Fingerprint
from processors.context_graph.rules.workspace import WHOLE
from processors.embedding.query import EncodedQuery
from processors.memory.rules.relevance import FIRST, Calibration, relevance_of, shown_probability
from storage.context_graph.memory_rows import MemoryRow, MemoryRows
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.records.hits import SearchHit, SearchResult
from storage.search.search import Keywords, search
from streams.clock import format_time
from streams.event_types.context_graph import MODALITIES
from streams.ids import document_label

MAX_QUERY = 10_000
EVERY_HIT = 10_000
"""The pools of all sides together hold fewer hits."""
DIGITS = 3
"""Of an alignment in an answer."""
_VIEWS = tuple(f"E{number}" for number in range(1, COUNT + 1))
Row = dict[str, Any]


async def search_graph(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, search, and keep what is near enough."""
    query = writes.checked_text(arguments, "query", most=MAX_QUERY)
    modality, least = arguments.get("modality"), arguments["minSimilarity"]
    chosen = Filter(call.namespace, toolsets=(TOOLSET,), kinds=(modality,) if modality else ())
    is_fresh = await call.fresh(vectors=True)

    prepare = functools.partial(_prepared, call=call, text=query, least=least)
    found = await call.prepared_search(query, chosen, arguments["topK"], prepare)
    query_id = leave_recall(call, "search_graph", query, found.rows, found.priors)
    await leave_miss(call, "search_graph", query_id, is_missed=found.is_missed)
    notes: dict[str, Any] = {"nothing_relevant": found.nothing, **({} if is_fresh else {"stale": True})}
    if found.behind is not None:
        notes["effective_results"] = round(found.behind, DIGITS)
    if found.degraded is not None:
        notes |= {"degraded": True, "message": found.degraded}
    return {"success": True, "results": found.rows, "count": len(found.rows), "query_vector_id": query_id, **notes}


@dataclass(frozen=True)
class _Prepared:
    """What a search needs beside the vector of its text.

    `is_repeated`: a dream found that this was asked again and again. `towards`: what memories are aligned with, None in
    an empty store.
    """

    call: Call
    least: float
    is_repeated: bool
    correction: Correction
    attention: Attention
    calibration: Calibration
    text: UnencodedText
    towards: Fingerprint | None


class _Found(NamedTuple):
    """The rows, best first, with the `priors` of their relevance; `nothing`: probably none is right.

    `is_missed`: something was found, and nothing of it was similar enough.
    `behind`: how many results stand behind the answer, where a modulator is off its baseline or a memory was broadcast.
    """

    rows: list[Row]
    priors: list[float | None]
    nothing: bool
    is_missed: bool
    degraded: str | None
    behind: float | None


def _prepared(cursor: duckdb.DuckDBPyConnection, *, call: Call, text: str, least: float) -> Search[_Found]:
    """The search, with what the store says of the namespace and what the text says without a model."""
    is_corrected = call.services.may_hold(CORRECTIONS, (call.namespace,))
    correction = read_correction(cursor, call.namespace) if is_corrected else NONE
    attention, reader = _attention(cursor, call), reader_of(call, cursor)
    prepared = _Prepared(
        call,
        attention.near_enough(least),
        is_repeated(cursor, call.namespace, text, call.services.may_hold),
        correction,
        attention,
        known_calibration(cursor, call.namespace, call.services.may_hold),
        reader.unencoded(text, call.clock.now(), session_id=call.session_id),
        purpose(reader, call.part(Purposes)).centre,
    )
    return functools.partial(_search, prepared)


def _search(
    prepared: _Prepared,
    cursor: duckdb.DuckDBPyConnection,
    indexes: IndexSet,
    query: Query,
    prefetched: Keywords | None,
) -> _Found:
    """What is found: one turn on a reader thread."""
    call, correction, attention = prepared.call, prepared.correction, prepared.attention
    query = widened(query) if prepared.is_repeated else query
    deep = attention.deep(query if correction.is_empty else deep_enough(query))
    reader = reader_of(call, cursor)
    ranked = search(
        cursor, indexes, replace(_deep(deep, prepared.least), candidates=_view_candidates(reader, query)), prefetched
    )
    trusted = relevance_of(ranked.hits, prepared.calibration)
    relevance = {hit.label: pair for hit, *pair in zip(ranked.hits, trusted.priors, trusted.values, strict=True)}
    near, nearness = _near_enough(indexes, deep, ranked, prepared.least)
    asked = functools.partial(_asked, reader, prepared, query, near, nearness)
    ordered, behind = attended(reader, attention, near, asked)
    ordered, added = _corrected(reader, correction, ordered, call)
    hits = ordered[: query.limit]
    memories = call.part(MemoryRows).read(cursor, call.namespace, [hit.record_id for hit in hits])
    compared = _compared(reader, prepared, query, hits, nearness)
    paths = _paths(reader, [hit.record_id for hit in hits])
    rows = [
        _shown(hit, nearness[hit.label], memories)
        | {"relevance": shown_probability(relevance[hit.label][1])}
        | compared[hit.record_id]
        | ({"correction": round(added[hit.record_id], 6)} if hit.record_id in added else {})
        | paths.get(hit.record_id, {})
        for hit in hits
    ]
    is_missed = bool(ranked.hits) and not rows and ranked.degraded is None
    priors = [relevance[hit.label][0] for hit in hits]
    return _Found(rows, priors, trusted.nothing, is_missed, ranked.degraded, behind)


def _deep(query: Query, least: float) -> Query:
    """The query for enough hits to leave some out and to judge the first; its candidates stay the same."""
    return replace(query, limit=EVERY_HIT if least > 0 else max(query.limit, FIRST), pool=query.pool_size)


def _view_candidates(reader: FingerprintReader, query: Query) -> list[int]:
    """The nearest in each view with a model of its own, which the engine ranks with its candidates."""
    if not (asked := reader.query_vectors(query.text)):
        return []
    allowed = reader.indexes.records.allowed(reader.cursor, query.filter)
    return reader.nearest_of_models(asked, OF_A_VIEW, allowed.labels)


def _corrected(
    reader: FingerprintReader, correction: Correction, hits: list[SearchHit], call: Call
) -> tuple[list[SearchHit], Mapping[str, float]]:
    """The hits as the correction of drift orders them, and what it adds; as they are without one."""
    goal = None if correction.is_empty else read_north_star(reader.cursor, reader.namespace)
    if goal is None:
        return hits, {}
    aligned = DriftReader(reader, call.part(Purposes), call.part(DriftCache), goal).purpose_vectors(
        [hit.record_id for hit in hits[:REORDERED]]
    )
    return reordered(hits, correction, aligned)


def _paths(reader: FingerprintReader, ids: Sequence[str]) -> dict[str, Row]:
    """By memory the path over edges from the best result to it, where it has two hops or more."""
    if len(ids) < 3:
        return {}
    relations = reader.indexes.records.follow_relations(reader.cursor)
    is_merged = relations.stands_for_others([document_label(reader.namespace, one) for one in ids])
    if not is_merged and not may_lead_on(reader.namespace, ids, reader.may_hold):
        return {}  # as of most searches: no path of two hops leads away from the first result
    found = chains(ids, edges_among(reader.cursor, reader.namespace, ids, has_ends=is_merged))
    return {one: {"path": list(path)} for one, path in found.items() if len(path) > 2}


def _near_enough(
    indexes: IndexSet, query: Query, ranked: SearchResult, least: float
) -> tuple[list[SearchHit], Mapping[int, Nearness]]:
    """The best hits of at least this similarity, and the nearness of each by its label."""
    looked_at = ranked.hits if least > 0 else ranked.hits[: query.limit]
    nearness = nearness_of_hits(indexes, query, looked_at)
    hits = [hit for hit in looked_at if nearness[hit.label].similarity >= least]
    return hits[: query.limit], nearness


def _compared(
    reader: FingerprintReader,
    prepared: _Prepared,
    query: Query,
    hits: Sequence[SearchHit],
    nearness: Mapping[int, Nearness],
) -> dict[str, Row]:
    """By memory how near it is to the query in each view and by the purpose of both.

    A view that says nothing of the two is left out.
    """
    stored = [one for one in reader.stored([hit.record_id for hit in hits]) if one is not None]
    if not stored:
        return {}
    asked = _asked(reader, prepared, query, hits, nearness)
    aligned = alignments(asked, stored)
    purposes = purpose_vectors(prepared.towards, [asked, *stored])
    similar, dominant = purpose_similarity(purposes[0], purposes[1:]), dominant_views(aligned)
    shown = np.round(aligned.astype(np.float64), DIGITS).tolist()
    return {
        str(one.memory_id): {
            "views": {view: value for view, value in zip(_VIEWS, shown[place], strict=True) if value == value},
            "purposeAlignment": round(float(similar[place]), DIGITS),
            "dominantEmbedder": f"E{dominant[place] + 1}",
            "thetaToNorthStar": round(mean_alignment(purposes[place + 1]), DIGITS),
        }
        for place, one in enumerate(stored)
    }


def _asked(
    reader: FingerprintReader,
    prepared: _Prepared,
    query: Query,
    hits: Sequence[SearchHit],
    nearness: Mapping[int, Nearness],
) -> Fingerprint:
    """The fingerprint of the query. Its neighbours are the nearest of the hits: another look at all vectors would take
    as long as the search.
    """
    encoded = EncodedQuery(query.vector, query.tokens, query.space)
    cosines = {label: each.cosine for label, each in nearness.items() if each.cosine is not None}
    near = sorted((hit.label for hit in hits if hit.label in cosines), key=lambda label: -cosines[label])
    return reader.of_text(prepared.text, encoded, near)


def _attention(cursor: duckdb.DuckDBPyConnection, call: Call) -> Attention:
    """What modulators and a broadcast make of this search; nothing is read before the first."""
    session_id = call.session_id or call.connection.open_session_id or WHOLE
    is_adjusted = call.services.may_hold(MODULATORS, (call.namespace,))
    is_broadcast = call.services.may_hold(WORKSPACES, (call.namespace, session_id))
    return read_attention(cursor, call.namespace, session_id, moment(call)) if is_adjusted or is_broadcast else NEUTRAL


def _shown(hit: SearchHit, near: Nearness, memories: Mapping[str, MemoryRow]) -> Row:
    memory = memories[hit.record_id]
    is_part = hit.passage is not None and hit.text.startswith(memory.content)
    return {
        "fingerprintId": hit.record_id,
        "content": memory.content,
        "similarity": near.similarity,
        "cosine": near.cosine,
        "score": round(hit.score, 6),
        "modality": hit.kind,
        "importance": memory.importance,
        "tags": memory.tags,
        "createdAt": format_time(hit.created_at.replace(tzinfo=UTC)),
        **({} if memory.rationale is None else {"rationale": memory.rationale}),
        **({"passage": {"start": hit.passage.start, "end": hit.passage.end}} if hit.passage and is_part else {}),
        **repeated(hit.also, hit.times),
        **changed(hit.earlier, hit.disputed_by),
    }


_TEXT = {"type": "string"}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}

TOOL = Tool(
    name="search_graph",
    toolset="context_graph",
    title="Search the graph",
    description="Search the knowledge graph using semantic similarity. Returns memories, best first by `score` "
    "(meaning, words, dates); `similarity` says how much of the query a memory covers, `relevance` how probably it "
    "is what was asked for, `nothing_relevant` that probably none is. Importance changes no order.",
    kind="read",
    handler=search_graph,
    timeout_s=10.0,
    memory_operation="search_memory",
    truncation=Truncation(
        {"results": {"content": "{fingerprintId}", "rationale": "{fingerprintId}?field=rationale"}}, query="query"
    ),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "topK": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10, "description": "Most results"},
            "minSimilarity": {**_UNIT, "default": 0.0, "description": "Leave out what is less similar"},
            "modality": {"type": "string", "enum": MODALITIES, "description": "Only this modality"},
        },
        "required": ["query"],
    },
    output_schema=writes.output_schema(
        {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "fingerprintId": _TEXT,
                        "content": _TEXT,
                        "similarity": {**_UNIT, "description": "How much of the query it covers"},
                        "cosine": {"type": ["number", "null"], "description": "Of the two vectors"},
                        "score": {**_UNIT, "description": "By which it is ranked"},
                        "relevance": {
                            **_UNIT,
                            "type": ["number", "null"],
                            "description": "How probably it is right: of ten rows with 0.7 about seven are",
                        },
                        "correction": {
                            "type": "number",
                            "description": "Added to the score of the first ten by a correction of drift in force",
                        },
                        "modality": _TEXT,
                        "importance": _UNIT,
                        "tags": {"type": "array", "items": _TEXT},
                        "createdAt": _TEXT,
                        "rationale": _TEXT,
                        "views": {
                            "type": "object",
                            "description": "Nearness to the query in each view that says something, E1 to E13",
                            "additionalProperties": {"type": "number", "minimum": -1, "maximum": 1},
                        },
                        "purposeAlignment": {**_UNIT, "description": "Of the purposes of query and memory"},
                        "dominantEmbedder": {**_TEXT, "description": "The view in which it stands out among the rows"},
                        "thetaToNorthStar": {
                            "type": "number",
                            "description": "Its mean alignment with the purpose; until a goal is found, with the most "
                            "central of the first memories",
                        },
                        "path": {
                            "type": "array",
                            "items": _TEXT,
                            "minItems": 3,
                            "description": "The results over whose edges it is reached from the first one, both named",
                        },
                        **REPEATED,
                        **CHANGED,
                    },
                    "required": ["fingerprintId", "content", "similarity", "score", "modality", "importance", "tags"],
                },
            },
            "count": {"type": "integer", "minimum": 0, "description": "Of what was found, shown or not"},
            "nothing_relevant": {"type": "boolean", "description": "Probably none of what was found is right"},
            "effective_results": {
                "type": "number",
                "description": "How many results stand behind the answer, while a modulator is off its baseline",
            },
            "query_vector_id": {**_TEXT, "description": "Names the search to `update_synergy_matrix`"},
            **GAP_FIELDS,
        }
    ),
)
