"""omni_infer: what follows from a memory, what it follows from, and which cause is the likeliest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.merged_ids import FOLLOWED_FROM, follow
from mcp_ingress.toolsets.context_graph.recalls import leave_results
from processors.context_graph.read.inference import (
    PathMemory,
    edges_ahead,
    edges_behind,
    read_evidence,
    read_importance,
    read_path_memories,
)
from processors.context_graph.rules.edges import Key
from processors.context_graph.rules.inference import (
    DECAY,
    LEAST_BRIDGE,
    MAX_HOPS,
    MIN_CONFIDENCE,
    STRONG,
    CausalPath,
    abduce,
    effects,
    mutual,
)
from processors.context_graph.rules.memories import query_vector_id
from storage.context_graph.causal_edges import CausalEdges, CausalFollower
from storage.search.index_set import IndexSet
from streams.errors import Refused
from streams.ids import document_label

CAUSES_STAGE = "causes"
NAMED_CHARS = 120
"""Characters of a memory by which an explanation names it."""
MAX_RESULTS = 20
MEMORY_SIM = 0.5
"""The cosine below which two memories are of different matters."""
REFLEX = 0.8
"""The confidence from which an inference is sure."""
DESCRIPTIONS = {
    "forward": "From source to target: whether the target is an effect of the source",
    "backward": "From target to source: whether the target is a cause of the source",
    "bidirectional": "Both ways: how much source and target cause each other",
    "bridge": "From the source to effects of another matter, kind or tags",
    "abduction": "From the source, as what was observed, to its likeliest causes",
}
_PAIRED = ("forward", "backward", "bidirectional")
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Inference:
    """A path that answers, to the memory `end`. `back`: the path the other way; the rest is of a hypothesis."""

    end: str
    path: CausalPath
    back: CausalPath | None = None
    posterior: float | None = None
    rank: int | None = None

    @property
    def strength(self) -> float:
        return self.path.strength if self.back is None else mutual(self.path.strength, self.back.strength)

    @property
    def confidence(self) -> float:
        return min(one.confidence for one in (self.path, self.back) if one is not None)


@dataclass(frozen=True, slots=True)
class _Told:
    """What an explanation tells: the memories of the paths by id, and what speaks for each edge."""

    memories: Mapping[str, PathMemory]
    evidence: Mapping[Key, Any]


async def omni_infer(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Wait for what the stage finds in the caller's memories, walk the paths, and tell which were walked."""
    _check(arguments)
    is_fresh = await call.fresh(CAUSES_STAGE)
    asked, rows = await call.read(lambda cursor: _infer(cursor, call, arguments))
    _leave(call, arguments, rows)
    return {
        "success": True,
        "results": rows,
        "result_count": len(rows),
        "direction": arguments["direction"],
        "direction_description": DESCRIPTIONS[arguments["direction"]],
        **asked,
        "inference_config": {
            "max_hops": MAX_HOPS,
            "decay": DECAY,
            "min_confidence": MIN_CONFIDENCE,
            "include_indirect": True,
        },
        **({} if is_fresh else {"stale": True}),
    }


def _check(arguments: Mapping[str, Any]) -> None:
    """Raises Refused."""
    writes.checked_text(arguments, "source")
    if "target" in arguments:
        writes.checked_text(arguments, "target")
    elif arguments["direction"] in _PAIRED:
        message = (
            f"The direction {arguments['direction']!r} needs a `target`; without one, ask `bridge` or `abduction`."
        )
        raise writes.invalid(message, "target", reason="missing")


def _infer(cursor: duckdb.DuckDBPyConnection, call: Call, arguments: Mapping[str, Any]) -> tuple[Row, list[Row]]:
    """The ends as they are now, and the rows of the answer. Raises Refused for a memory that is not there."""
    asked, ends = _ends(cursor, call.namespace, arguments)
    source, target = ends["source"], ends.get("target")
    found = _paths(cursor, call, arguments["direction"], source, target)[:MAX_RESULTS]
    on_paths = {one for each in found for path in (each.path, each.back) if path is not None for one in path.ids}
    told = _Told(
        read_path_memories(cursor, call.namespace, on_paths, NAMED_CHARS),
        read_evidence(cursor, call.namespace, on_paths),
    )
    return asked, [_row(arguments["direction"], source, each, told) for each in found]


def _ends(
    cursor: duckdb.DuckDBPyConnection, namespace: str, arguments: Mapping[str, Any]
) -> tuple[Row, dict[str, str]]:
    """What the answer says of source and target, and their ids after merges. Raises Refused."""
    given = {name: arguments[name] for name in ("source", "target") if name in arguments}
    ends, told = follow(cursor, namespace, given)
    known = read_path_memories(cursor, namespace, list(ends.values()), 0)
    for name, identity in ends.items():
        if identity not in known:
            message = f"There is no memory {given[name][:80]!r}: `{name}` takes a `fingerprintId`."
            raise Refused(message, reason="not_found", field=name)
    if len(set(ends.values())) < len(ends):
        message = "The arguments `source` and `target` are one memory; name two, or leave `target` out for `abduction`."
        raise writes.invalid(message, "target", reason="conflict")
    return ends | told, ends


def _paths(
    cursor: duckdb.DuckDBPyConnection, call: Call, direction: str, source: str, target: str | None
) -> list[_Inference]:
    """What answers, best first."""
    namespace, known = call.namespace, call.part(CausalFollower).view(cursor, call.namespace)
    if direction == "abduction":
        return _hypotheses(cursor, namespace, known, source, target)
    if direction == "bridge":
        return _bridges(cursor, call, known, source, target)
    assert target is not None
    ahead = direction != "backward"
    first, last = (source, target) if ahead else (target, source)
    path = effects(edges_ahead(known, namespace, first), first).get(last)
    if path is None:
        return []
    if direction != "bidirectional":
        return [_Inference(target, path)]
    back = effects(edges_ahead(known, namespace, last), last).get(first)
    return [] if back is None else [_Inference(target, path, back)]


def _hypotheses(
    cursor: duckdb.DuckDBPyConnection, namespace: str, causal: CausalEdges, effect: str, wanted: str | None
) -> list[_Inference]:
    edges = edges_behind(causal, namespace, effect)
    candidates = {edge.source_id for edge in edges} - {effect}
    ranked = abduce(edges, effect, read_importance(cursor, namespace, candidates))
    found = [_Inference(one.path.ids[0], one.path, None, one.posterior, rank) for rank, one in enumerate(ranked, 1)]
    return [one for one in found if wanted in (None, one.end)]


def _bridges(
    cursor: duckdb.DuckDBPyConnection, call: Call, causal: CausalEdges, source: str, wanted: str | None
) -> list[_Inference]:
    """Strong paths to memories of another matter, modality or tags, the strongest first."""
    paths = effects(edges_ahead(causal, call.namespace, source), source)
    strong = {end: path for end, path in paths.items() if path.strength >= LEAST_BRIDGE and wanted in (None, end)}
    memories = read_path_memories(cursor, call.namespace, [source, *strong], 0)
    near = _near(call.services.indexes, call.namespace, source, list(strong))
    found = [
        _Inference(end, path)
        for end, path in strong.items()
        if end in memories and (end not in near or _differ(memories[source], memories[end]))
    ]
    return sorted(found, key=lambda one: (-one.strength, one.end))


def _near(indexes: IndexSet, namespace: str, source: str, others: Sequence[str]) -> set[str]:
    """Those of the memories whose cosine with the source says that they are of one matter."""
    labels = {document_label(namespace, one): one for one in (source, *others)}
    vectors = indexes.space().vectors(np.array(list(labels), np.int64))
    own = vectors.get(document_label(namespace, source))
    if own is None:
        return set()
    return {labels[label] for label, vector in vectors.items() if float(vector @ own) >= MEMORY_SIM}


def _differ(one: PathMemory, other: PathMemory) -> bool:
    """Whether their modality differs, or their tags have nothing in common."""
    return one.modality != other.modality or (bool(one.tags or other.tags) and not set(one.tags) & set(other.tags))


def _row(direction: str, source: str, found: _Inference, told: _Told) -> Row:
    hops = len(found.path.edges)
    row = {
        "direction": direction,
        "source": source,
        "target": found.end,
        "strength": round(found.strength, 6),
        "confidence": round(found.confidence, 6),
        "path": found.path.ids,
        "path_length": hops,
        "is_direct": hops == 1,
        "is_high_confidence": found.confidence >= REFLEX,
        "is_strong": found.strength >= STRONG,
        "explanation": " ".join(_explained(path, told) for path in (found.path, found.back) if path is not None),
    }
    if found.back is not None:
        row["return_path"] = found.back.ids
    if found.posterior is not None:
        row |= {"posterior": round(found.posterior, 6), "rank": found.rank}
    return row


def _explained(path: CausalPath, told: _Told) -> str:
    """Each edge of a path in words: its ends, and which memory states it in which sentence."""
    parts = []
    for edge in path.edges:
        ends = (told.memories.get(one) for one in (edge.source_id, edge.target_id))
        cause, effect = (f"“{one.content}”" if one else "a memory that is gone" for one in ends)
        evidence = told.evidence.get(edge.key)
        given = evidence if isinstance(evidence, Mapping) else {}
        sentence, by = given.get("sentence"), given.get("memory_id")
        why = f": memory {by} states “{sentence}”" if sentence else ""
        parts.append(f"{cause} → {effect}{why}.")
    return " ".join(parts)


def _leave(call: Call, arguments: Mapping[str, Any], rows: Sequence[Row]) -> None:
    """Tell what was found, and each path of several edges."""
    query = " ".join(arguments.get(name, "") for name in ("direction", "source", "target"))
    found = [{"memory_id": row["target"], "similarity": row["strength"]} for row in rows]
    chains = [row["path"] for row in rows if not row["is_direct"]]
    leave_results(call, TOOL.name, query_vector_id(call.namespace, query), found, chains)


_ID = {"type": "string"}
_UNIT = {"type": "number", "minimum": 0, "maximum": 1}
_FLAG = {"type": "boolean"}
_COUNT = {"type": "integer", "minimum": 0}

TOOL = Tool(
    name="omni_infer",
    toolset="context_graph",
    title="Causes and effects",
    description='Perform omni-directional causal inference over what memories state ("X because Y"): forward (A→B '
    "effect), backward (B→A cause), bidirectional (A↔B mutual), bridge (effects of another matter), abduction (the "
    "likeliest causes of `source`). Each result has its sentences. Find `source` with `search_graph` first.",
    kind="read",
    handler=omni_infer,
    timeout_s=10.0,
    memory_operation="search_memory",
    input_schema={
        "type": "object",
        "properties": {
            "source": {"type": "string", "description": "Source node UUID; of abduction what was observed"},
            "target": {
                "type": "string",
                "description": (
                    "Target node UUID (required for forward/backward/bidirectional); else the only end wanted"
                ),
            },
            "direction": {
                "type": "string",
                "enum": list(DESCRIPTIONS),
                "default": "forward",
                "description": "Inference direction",
            },
        },
        "required": ["source"],
    },
    output_schema=writes.output_schema(
        {
            "results": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "direction": {"type": "string"},
                        "source": _ID,
                        "target": _ID,
                        "strength": {**_UNIT, "description": "Product of the weights, times 0.9 for each further edge"},
                        "confidence": {**_UNIT, "description": "Of the least sure edge: 0.9 stated, 0.6 supposed"},
                        "path": {"type": "array", "items": _ID, "description": "From cause to effect"},
                        "return_path": {"type": "array", "items": _ID, "description": "Of bidirectional, the way back"},
                        "path_length": {**_COUNT, "description": "Edges"},
                        "is_direct": _FLAG,
                        "is_high_confidence": _FLAG,
                        "is_strong": _FLAG,
                        "posterior": {**_UNIT, "description": "Of abduction: strength times share of importance"},
                        "rank": {**_COUNT, "description": "Of abduction: among all hypotheses, from 1"},
                        "explanation": {"type": "string", "description": "What states it, edge by edge"},
                    },
                    "required": ["direction", "source", "target", "strength", "confidence", "path", "explanation"],
                },
            },
            "result_count": _COUNT,
            "direction": {"type": "string"},
            "direction_description": {"type": "string"},
            "source": _ID,
            "target": _ID,
            **FOLLOWED_FROM,
            "inference_config": {
                "type": "object",
                "properties": {
                    "max_hops": _COUNT,
                    "decay": _UNIT,
                    "min_confidence": _UNIT,
                    "include_indirect": _FLAG,
                },
            },
        }
    ),
)
