"""search_teleological: memories compared with a query in thirteen views, by a strategy."""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call, Search
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.context_graph.merged_ids import FOLLOWED_FROM
from mcp_ingress.toolsets.context_graph.profile_queries import GROUP_NUMBERS
from mcp_ingress.toolsets.context_graph.reader import reader_of
from mcp_ingress.toolsets.context_graph.recalls import leave_miss, leave_results
from mcp_ingress.toolsets.context_graph.session_state import moment
from mcp_ingress.toolsets.context_graph.vector_queries import StoredVector, find_vector, unknown_vector
from processors.context_graph.read.attention import MODULATORS
from processors.context_graph.read.goals import Purposes
from processors.context_graph.read.state import read_levels
from processors.context_graph.read.teleology import (
    CANDIDATES,
    MOST_CANDIDATES,
    Compared,
    TextQuestion,
    compare,
    question_of,
    read_synergy,
)
from processors.context_graph.rules import strategies
from processors.context_graph.rules.attention import near_enough
from processors.context_graph.rules.fusion import confidences
from processors.context_graph.rules.groups import GROUPS, VIEW_COUNT, named
from processors.context_graph.rules.memories import TOOLSET, query_vector_id
from storage.context_graph.memory_rows import MemoryRows
from storage.search.index_set import IndexSet
from storage.search.query import Query
from storage.search.records.filter import Filter
from storage.search.search import Keywords

MAX_QUERY = 10_000
_WEIGHTS = ("weight_purpose", "weight_correlations", "weight_groups")
Row = dict[str, Any]


async def search_teleological(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the caller has written, compare, and keep what is similar enough."""
    begun = call.clock.monotonic()
    _check(arguments)
    is_fresh = await call.fresh(vectors=True)
    asked, query_id = await _asked(call, arguments)

    found, used, rows = await _searched(call, asked, arguments)
    await _leave(call, query_id, found, rows)
    notes: dict[str, Any] = asked.told | ({} if is_fresh else {"stale": True})
    if found.degraded is not None:
        notes |= {"degraded": True, "message": found.degraded}
    return {
        "success": True,
        "strategy": used,
        "requested_strategy": arguments["strategy"],
        "scope": arguments["scope"],
        "query_type": "content" if "query_content" in arguments else "vector_id",
        **{"query_vector_id": query_id, "num_results": len(rows), "results": rows},
        "search_latency_ms": round(1000 * (call.clock.monotonic() - begun), 3),
        **notes,
    }


async def _searched(call: Call, asked: StoredVector, arguments: Mapping[str, Any]) -> tuple[Compared, str, list[Row]]:
    """What was compared, the strategy that was used, and the rows of the answer."""

    def prepared(cursor: duckdb.DuckDBPyConnection) -> Search[tuple[Compared, str, list[Row]]]:
        question = question_of(reader_of(call, cursor), call.part(Purposes), asked.text, call.clock.now())
        least = _near_enough(cursor, call, arguments["min_similarity"])
        return functools.partial(compared, question, least)

    def compared(
        question: TextQuestion,
        least: float,
        cursor: duckdb.DuckDBPyConnection,
        indexes: IndexSet,
        query: Query,
        prefetched: Keywords | None,
    ) -> tuple[Compared, str, list[Row]]:
        reader = reader_of(call, cursor)
        found = compare(reader, question, query, prefetched, asked.memory_id, chosen)
        used, rows = _best(found, read_synergy(reader), asked, {**arguments, "min_similarity": least})
        stored = call.part(MemoryRows).read(cursor, call.namespace, [row["id"] for row in rows])
        return found, used, [{**row, "content": stored[row["id"]].content} for row in rows if row["id"] in stored]

    chosen = arguments["specific_embedder"] + 1 if "specific_embedder" in arguments else None
    has_choice = any(name in arguments for name in ("specific_groups", "specific_embedder"))
    most = MOST_CANDIDATES if has_choice else min(max(CANDIDATES, arguments["max_results"]), MOST_CANDIDATES)
    return await call.prepared_search(asked.text, Filter(call.namespace, toolsets=(TOOLSET,)), most, prepared)


def _near_enough(cursor: duckdb.DuckDBPyConnection, call: Call, least: float) -> float:
    """The similarity that is asked for: less of it while noradrenaline is raised."""
    if least <= 0 or not call.services.may_hold(MODULATORS, (call.namespace,)):
        return least
    return near_enough(least, read_levels(cursor, call.namespace, moment(call)))


def _check(arguments: Mapping[str, Any]) -> None:
    """Raises Refused for arguments that fit none of the searches."""
    given = [name for name in ("query_content", "query_vector_id") if name in arguments]
    if len(given) != 1:
        message = "Give either `query_content`, a text, or `query_vector_id`, the id of a memory or vector"
        ending = ": neither is there." if not given else ", not both."
        raise writes.invalid(message + ending, "query_content", reason="conflict" if given else "missing")
    writes.checked_text(arguments, given[0], most=MAX_QUERY)
    if not any(arguments[name] for name in _WEIGHTS):
        message = f"The weights {', '.join(_WEIGHTS)} are all 0; give at least one of them a number above 0."
        raise writes.invalid(message, _WEIGHTS[0], reason="range")


async def _asked(call: Call, arguments: Mapping[str, Any]) -> tuple[StoredVector, str]:
    """What is searched with, and its id. Raises Refused."""
    if (content := arguments.get("query_content")) is not None:
        return StoredVector(content), query_vector_id(call.namespace, content)
    identity = arguments["query_vector_id"]
    found = await call.read(functools.partial(find_vector, namespace=call.namespace, vector_id=identity))
    if found is None:
        raise unknown_vector("query_vector_id", identity)
    return found, identity


def _best(
    found: Compared, synergy: np.ndarray, asked: StoredVector, arguments: Mapping[str, Any]
) -> tuple[str, list[Row]]:
    """The strategy that was used, and the rows without their contents, best first."""
    weights = strategies.Weights(
        purpose=arguments["weight_purpose"],
        correlations=arguments["weight_correlations"],
        groups=arguments["weight_groups"],
        views=asked.weights,
        only=arguments.get("specific_groups"),
    )
    purposes = strategies.purpose_similarity(found.query_purpose, found.purposes, weights.of_views)
    scores = strategies.score(
        found.alignments,
        purposes,
        synergy,
        strategy=arguments["strategy"],
        scope=arguments["scope"],
        weights=weights,
    )
    view, used, similarity = arguments.get("specific_embedder"), str(scores.used), scores.similarity
    if view is not None:
        used, similarity = f"E{view + 1}", strategies.one_view(found.alignments, view)
    order = [int(at) for at in np.argsort(-similarity, kind="stable") if similarity[at] >= arguments["min_similarity"]]
    dominant, confidence = strategies.dominant_views(found.alignments), confidences(found.alignments, synergy)
    rows = []
    for rank, at in enumerate(order[: arguments["max_results"]], 1):
        row = {
            "rank": rank,
            "id": found.ids[at],
            "similarity": _number(similarity[at]),
            "purpose_alignment": _number(purposes[at]),
            "dominant_embedder": f"E{dominant[at] + 1}",
        }
        if arguments["include_breakdown"]:
            row["breakdown"] = {
                "purpose_vector": _number(scores.purpose[at]),
                "cross_correlations": _number(scores.correlations[at]),
                "group_alignments": _number(scores.groups[at]),
                "confidence": _number(confidence[at]),
                "per_group": {name: _number(value) for name, value in named(scores.per_group[at]).items()},
                "per_embedder": [_number(value) for value in found.alignments[at]],
            }
        rows.append(row)
    return used, rows


async def _leave(call: Call, query_id: str, found: Compared, rows: list[Row]) -> None:
    """What the search leaves on the log: its results, or that it left out all that it found."""
    places = {identity: place for place, identity in enumerate(found.ids)}
    results = [
        {
            "memory_id": row["id"],
            "similarity": row["similarity"],
            "alignments": [_number(value) for value in found.alignments[places[row["id"]]]],
        }
        for row in rows
    ]
    leave_results(call, "search_teleological", query_id, results)
    is_missed = bool(found.ids) and not rows and found.degraded is None
    await leave_miss(call, "search_teleological", query_id, is_missed=is_missed)


def _number(value: float) -> float | None:
    """With six digits; None of a view that is not available."""
    return None if math.isnan(value) else round(float(value), 6)


_TEXT = {"type": "string"}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_WEIGHT = {**_UNIT, "description": "Used by the strategy cosine"}

TOOL = Tool(
    name="search_teleological",
    toolset="context_graph",
    title="Search in thirteen views",
    description="Perform teleological matrix search across all 13 embedder dimensions, compared view by view. For "
    "plain questions `search_graph` finds more; this one says which views agree, and compares one view or group "
    "alone.",
    kind="read",
    handler=search_teleological,
    timeout_s=10.0,
    memory_operation="search_memory",
    truncation=Truncation({"results": {"content": "{id}"}}, query="query_content"),
    input_schema={
        "type": "object",
        "properties": {
            "query_content": {"type": "string", "description": "Content to search for"},
            "query_vector_id": {"type": "string", "description": "Instead of it: the id of a memory or of a vector"},
            "strategy": {
                "type": "string",
                "enum": list(strategies.STRATEGIES),
                "default": "adaptive",
                "description": "What makes one similarity of thirteen",
            },
            "scope": {
                "type": "string",
                "enum": list(strategies.SCOPES),
                "default": "full",
                "description": "What is compared; purposes alone find little",
            },
            "specific_groups": {
                "type": "array",
                "items": {"type": "string", "enum": list(GROUPS)},
                "minItems": 1,
                "description": "Compare only these groups",
            },
            "specific_embedder": {
                "type": "integer",
                "minimum": 0,
                "maximum": VIEW_COUNT - 1,
                "description": "This embedder alone, 0 is E1; ignores the strategy",
            },
            "weight_purpose": {**_WEIGHT, "default": strategies.PURPOSE},
            "weight_correlations": {**_WEIGHT, "default": strategies.CORRELATIONS},
            "weight_groups": {**_WEIGHT, "default": strategies.GROUP_WEIGHT},
            "min_similarity": {**_UNIT, "default": 0.3, "description": "Leave out what is less similar"},
            "max_results": {
                "type": "integer",
                "minimum": 1,
                "maximum": 1000,
                "default": 20,
                "description": f"Most results; at most {MOST_CANDIDATES} memories are compared where there are more",
            },
            "include_breakdown": {"type": "boolean", "default": True, "description": "Show what similarity is made of"},
        },
    },
    output_schema=writes.output_schema(
        {
            "strategy": {"type": "string", "description": "The one that was used; E1 to E13 for one embedder alone"},
            "requested_strategy": _TEXT,
            "scope": _TEXT,
            "query_type": _TEXT,
            "query_vector_id": {"type": "string", "description": "Give it to `update_synergy_matrix` with a result"},
            "num_results": {"type": "integer", "minimum": 0},
            **FOLLOWED_FROM,
            "search_latency_ms": {"type": "number"},
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "rank": {"type": "integer", "minimum": 1},
                        "id": _TEXT,
                        "content": _TEXT,
                        "similarity": _UNIT,
                        "purpose_alignment": {
                            **_UNIT,
                            "description": "How far both are aligned with the purpose alike",
                        },
                        "dominant_embedder": {"type": "string", "description": "The view in which it stands out most"},
                        "breakdown": {
                            "type": "object",
                            "properties": {
                                "purpose_vector": _UNIT,
                                "cross_correlations": _UNIT,
                                "group_alignments": _UNIT,
                                "confidence": _UNIT,
                                "per_group": GROUP_NUMBERS,
                                "per_embedder": {"type": "array", "items": {"type": ["number", "null"]}},
                            },
                        },
                    },
                    "required": ["rank", "id", "similarity"],
                },
            },
            **GAP_FIELDS,
        }
    ),
)
