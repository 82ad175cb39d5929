"""inner_voice.retrieve: a query becomes snippets with provenance, of thoughts and of what is known. No model writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from datetime import UTC
from typing import Any

import duckdb
import numpy as np

from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import WHOLE_SCHEMA, Truncation, uri_of
from mcp_ingress.other_records import CHANGED, REPEATED, changed, repeated
from mcp_ingress.services import Services
from mcp_ingress.tool import GAP_FIELDS, Tool
from mcp_ingress.toolsets.inner_voice.eligible import RowFilter
from mcp_ingress.toolsets.inner_voice.queries import Fetched, fetch_candidates
from processors.embedding.model import Embedder, ModelInfo, encode_query
from processors.inner_voice.config import MAX_TOP_K, InnerVoiceConfig
from processors.inner_voice.rules.provenance import ID_PREFIXES, SOURCE_TYPES, trust_tier
from processors.inner_voice.rules.selection import Candidate, Snippet, adapted_floor, pick
from processors.inner_voice.rules.text import cap, content_hash
from processors.memory.kind import TableName
from streams.clock import format_time
from streams.errors import EmbedderUnavailable, Refused, Unavailable

THOUGHTS: tuple[TableName, ...] = ("thoughts",)
KNOWLEDGE: tuple[TableName, ...] = ("kg_entities", "kg_observations")
EMBED_TIMEOUT_S = 5.0
UNCONFIGURED = InnerVoiceConfig()
PROVIDERS = {"onnxruntime": "onnx"}
"""What this tool's callers call the libraries that run a model, where they have another name for one."""

logger = logging.getLogger(__name__)


def effective_defaults(services: Services) -> dict[str, Any]:
    """What `top_k` and `mix` are on this node where a call does not say."""
    config = services.part(InnerVoiceConfig)
    return {"top_k": config.top_k, "mix": config.mix}


async def retrieve(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Embed the query, fetch each table by similarity, adapt the floor, and share out the slots."""
    started, config = call.clock.monotonic(), call.part(InnerVoiceConfig)
    query, limits = _parameters(call, arguments)
    embedder, vector = await _embed(call, query)
    is_fresh = await call.fresh("extract", "embed", vectors=True)
    thoughts, knowledge = await _fetch(call, embedder, vector, limits, arguments)
    best = [
        max(candidate.score for candidate in source.candidates) for source in (thoughts, knowledge) if source.candidates
    ]
    floor_used = adapted_floor(best, limits["floor"], config.min_floor)
    hits = pick([*knowledge.candidates, *thoughts.candidates], floor_used, limits["mix"], limits["top_k"], content_hash)
    figures = _diagnostics(embedder.info, limits["top_k"], len(hits), knowledge.eligible, thoughts.eligible)
    figures |= {"floor_used": floor_used, "latency_ms": round((call.clock.monotonic() - started) * 1000)}
    _log(figures, limits["floor"], hits, is_quiet=config.is_quiet)
    notes = {} if hits else _nothing(thoughts.eligible + knowledge.eligible)
    stale = {} if is_fresh else {"stale": True}
    return {"snippets": [_snippet(hit) for hit in hits], "diagnostics": figures | notes | stale}


def _diagnostics(info: ModelInfo, top_k: int, returned: int, knowledge: int, thoughts: int) -> dict[str, Any]:
    """The model, the snippets that were requested and returned, and the eligible rows of each source."""
    model = {"provider": PROVIDERS.get(info.provider, info.provider), "model": info.model_id, "dim": info.dim}
    counts = {"k_req": top_k, "k_ret": returned, "kg_candidates": knowledge, "thought_candidates": thoughts}
    return model | counts


def _nothing(eligible: int) -> dict[str, Any]:
    return {"no_results": True, "reason": "floor_excluded_all" if eligible else "no_candidates"}


def _parameters(call: Call, arguments: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """The trimmed query, and top_k, floor and mix within their bounds."""
    config = call.part(InnerVoiceConfig)
    query = str(arguments["query"]).strip()
    if not query:
        raise Refused("The argument `query` is blank; it needs some text.", code="invalid_params")
    return query, {
        "top_k": min(max(int(arguments.get("top_k", config.top_k)), 1), MAX_TOP_K),
        "floor": min(max(float(arguments.get("floor", config.floor)), 0.0), 1.0),
        "mix": min(max(float(arguments.get("mix", config.mix)), 0.0), 1.0),
    }


async def _embed(call: Call, query: str) -> tuple[Embedder, np.ndarray]:
    """The one embedder of the node and the query's vector. Raises EmbedderUnavailable; no other provider is tried."""
    embedder = call.services.embedder
    if embedder is None:
        raise EmbedderUnavailable("The node runs without an embedding model; the setting `embedder` names one.")
    try:
        async with asyncio.timeout(EMBED_TIMEOUT_S):
            encoded, _ = await asyncio.get_running_loop().run_in_executor(None, encode_query, embedder, query)
    except TimeoutError:
        raise EmbedderUnavailable(f"The embedder did not answer within {EMBED_TIMEOUT_S:g} s.") from None
    except EmbedderUnavailable:
        raise
    except Exception as error:  # whatever the runtime of a model raises
        logger.warning("the embedder failed (%s)", type(error).__name__)
        raise EmbedderUnavailable("The embedder failed; the node's log has the kind of the error.") from error
    vector = np.asarray(encoded, np.float32)
    if len(vector) != embedder.info.dim:
        raise EmbedderUnavailable(
            f"Embedding dimension {len(vector)} does not match the active dimension {embedder.info.dim}."
        )
    return embedder, vector


async def _fetch(
    call: Call, embedder: Embedder, vector: np.ndarray, limits: Mapping[str, Any], arguments: Mapping[str, Any]
) -> tuple[Fetched, Fetched]:
    """Thoughts, and knowledge: a source that `mix` leaves out is not asked at all."""
    tables = (THOUGHTS if limits["mix"] < 1 else ()) + (KNOWLEDGE if limits["mix"] > 0 else ())
    row_filter = RowFilter(
        call.namespace,
        arguments.get("include_private", False),
        tuple(arguments.get("include_tags", ())),
        tuple(arguments.get("exclude_tags", ())),
    )
    config = call.part(InnerVoiceConfig)
    most = config.candidates(limits["top_k"])
    if config.max_candidates < limits["top_k"] and not config.is_quiet:
        logger.warning(
            "%d candidates of a source are fewer than top_k %d; %d are fetched",
            config.max_candidates,
            limits["top_k"],
            most,
        )

    def query(cursor: duckdb.DuckDBPyConnection) -> dict[TableName, Fetched]:
        return fetch_candidates(cursor, call.services.indexes, embedder.info, vector, tables, row_filter, most)

    try:
        fetched = await call.read(query)
    except (Unavailable, duckdb.Error) as error:
        logger.warning("a retrieval could not read the store (%s)", type(error).__name__)
        raise Refused("The store could not be read; call again, or ask `thalweg status`.", code="db_error") from error
    return _together(fetched, THOUGHTS), _together(fetched, KNOWLEDGE)


def _together(fetched: Mapping[TableName, Fetched], tables: tuple[TableName, ...]) -> Fetched:
    parts = [fetched[table] for table in tables if table in fetched]
    return Fetched([candidate for part in parts for candidate in part.candidates], sum(part.eligible for part in parts))


def _snippet(hit: Snippet) -> dict[str, Any]:
    found = hit.candidate
    text = cap(found.text)
    return {
        "id": ID_PREFIXES[found.table] + found.record_id,
        "table": found.table,
        "source_type": SOURCE_TYPES[found.table],
        "origin": found.origin or "model",
        "trust_tier": trust_tier(found.table, found.origin),
        "created_at": format_time(found.created_at.replace(tzinfo=UTC)),
        "text": text,
        "score": round(found.score, 6),
        "content_hash": hit.content_hash,
        "span_start": 0,
        "span_end": len(text),
        **found.said,
        **repeated(found.also, found.times),
        **changed(found.earlier, found.disputed_by, found.tensions),
        **_rest(text, found),
    }


def _rest(text: str, found: Candidate) -> dict[str, Any]:
    """Where the whole is, of a text that the snippet has the beginning of."""
    is_whole = text == found.text
    return {} if is_whole else {"truncated": True, "whole": uri_of("{id}", {"id": found.record_id})}


def _log(diagnostics: Mapping[str, Any], floor: float, hits: list[Snippet], *, is_quiet: bool) -> None:
    """Figures at info, ids at debug; never a text, and nothing at all when that is asked for."""
    if is_quiet:
        return
    logger.info("retrieved %s", {**diagnostics, "floor": floor})
    logger.debug("snippets %s", [(hit.candidate.table, hit.candidate.record_id) for hit in hits])


_TAGS = {"type": "array", "items": {"type": "string"}, "default": []}
_COUNT = {"type": "integer", "minimum": 0}
_TEXT = {"type": "string"}
_SNIPPET = {
    "id": _TEXT,
    "table": {"enum": list(ID_PREFIXES)},
    "source_type": {"enum": list(SOURCE_TYPES.values())},
    "origin": {"enum": ["human", "tool", "model", "logged"]},
    "trust_tier": {"enum": ["green", "amber", "red"]},
    "created_at": _TEXT,
    "text": {"type": "string", "maxLength": 800},
    "score": {"type": "number", "maximum": 1},
    "content_hash": _TEXT,
    "span_start": _COUNT,
    "span_end": _COUNT,
}
_TURN = {
    "session_id": {**_TEXT, "description": "Of what was said in a captured session: which session"},
    "role": {"enum": ["user", "assistant"], "description": "Who said it"},
    "source": {**_TEXT, "description": "The agent, such as claude-code"},
    "event_id": {**_TEXT, "description": "Its event in the session"},
}
_DIAGNOSTICS = {
    "provider": _TEXT,
    "model": _TEXT,
    **{name: _COUNT for name in ("dim", "k_req", "k_ret", "kg_candidates", "thought_candidates")},
    "floor_used": {"type": "number"},
    "latency_ms": _COUNT,
}
_NOTES = {
    "no_results": {"type": "boolean"},
    "reason": {"enum": ["no_candidates", "floor_excluded_all"]},
    "stale": {"type": "boolean"},
    **GAP_FIELDS,
}

TOOL = Tool(
    name="inner_voice.retrieve",
    toolset="inner_voice",
    title="Retrieve snippets",
    description="Turns a natural-language query into snippets with provenance, from thoughts and from the knowledge "
    "graph, for synthesis elsewhere. No language model is called and no text is written. "
    "Off unless the node runs with SURR_ENABLE_INNER_VOICE=1.",
    kind="read",
    handler=retrieve,
    notes_under="diagnostics",
    defaults=effective_defaults,
    timeout_s=15.0,
    memory_operation="search_memory",
    truncation=Truncation({"snippets": {}}, onward="{shown} snippets fit: ask for fewer with `top_k`."),
    input_schema={
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "Natural-language input"},
            "top_k": {
                "type": "integer",
                "default": UNCONFIGURED.top_k,
                "x-default-from-state": True,  # the node's settings have the last word
                "description": "Most snippets to return, 1 to 50",
            },
            "floor": {
                "type": "number",
                "description": "Least cosine similarity, 0.0 to 1.0; may be lowered so that each source has a hit",
            },
            "mix": {
                "type": "number",
                "default": UNCONFIGURED.mix,
                "x-default-from-state": True,
                "description": "Share of the knowledge graph: 0.0 thoughts only, 1.0 knowledge only",
            },
            "include_private": {
                "type": "boolean",
                "description": "Include thoughts that are private",
                "default": False,
            },
            "include_tags": {**_TAGS, "description": "Only items with at least one of these tags"},
            "exclude_tags": {**_TAGS, "description": "No item with any of these tags"},
        },
        "required": ["query"],
    },
    output_schema={
        "type": "object",
        "properties": {
            "success": {"const": False, "description": "Only in an error's answer"},
            "snippets": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {**_SNIPPET, **_TURN, **REPEATED, **CHANGED, "whole": WHOLE_SCHEMA},
                    "required": list(_SNIPPET),
                },
            },
            "diagnostics": {"type": "object", "properties": {**_DIAGNOSTICS, **_NOTES}, "required": list(_DIAGNOSTICS)},
        },
    },
)
