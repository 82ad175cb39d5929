"""Searches that people ask of a running node: the same engine as the tools', with everything that it knows about each hit."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from processors.embedding.model import encode_query
from storage.search.engine import Hit
from storage.search.planner import Filter
from storage.search.tokens import Tokens
from storage.search.why import explain
from streams.clock import format_time
from streams.errors import EmbedderUnavailable, Refused

if TYPE_CHECKING:
    from thalweg.node import Node

LISTS = ("kinds", "toolsets", "session_ids", "domains", "tags", "entities")
MOMENTS = ("created_from", "created_before", "valid_at", "known_at")
MAX_LIMIT = 1000


async def search_node(node: Node, request: Mapping[str, Any]) -> dict[str, Any]:
    """Hits with their sides: `{"hits": [...], "total", "degraded"}`. Raises Refused for what cannot be asked."""
    text, filter, limit = _asked(node, request)
    vector, tokens = await _encoded(node, text)
    found = await node.reader.run(lambda cursor: node.indexes.search(cursor, text, vector, filter, limit, tokens=tokens))
    return {"hits": [_shown(hit) for hit in found.hits], "total": found.total, "degraded": found.degraded}


async def why_node(node: Node, request: Mapping[str, Any]) -> dict[str, Any]:
    """What `storage.search.why.explain` says about one record."""
    text, filter, limit = _asked(node, request)
    vector, tokens = await _encoded(node, text)
    search = functools.partial(node.indexes.search, tokens=tokens)
    record_id = str(request["record_id"])
    found = await node.reader.run(lambda cursor: explain(cursor, node.indexes, text, vector, filter, limit, record_id, search))
    return {**asdict(found), "record_id": record_id, "sides": _sides(found.sides)}


def _asked(node: Node, request: Mapping[str, Any]) -> tuple[str, Filter, int]:
    text = str(request.get("query", "")).strip()
    if not text:
        raise Refused("The query is blank; say what to look for.")
    limit = int(request.get("limit", 10))
    if not 1 <= limit <= MAX_LIMIT:
        raise Refused(f"The limit {limit} is not within 1 and {MAX_LIMIT}.")
    chosen: dict[str, Any] = {name: tuple(request.get(name) or ()) for name in LISTS}
    chosen |= {name: moment(name, request[name]) for name in MOMENTS if request.get(name)}
    filter = Filter(str(request.get("namespace") or node.settings.namespace), **chosen)
    return text, filter, limit


async def _encoded(node: Node, text: str) -> tuple[np.ndarray | None, Tokens | None]:
    """The query's vector and tokens; None without an embedder or when it fails, which the result says."""
    if node.embedder is None:
        return None, None
    try:
        return await asyncio.get_running_loop().run_in_executor(None, encode_query, node.embedder, text)
    except EmbedderUnavailable:
        return None, None


def moment(name: str, text: str) -> datetime:
    """A date or an ISO-8601 time, UTC unless it says otherwise. Raises Refused."""
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        raise Refused(f"`{name}` is {text!r}; a date YYYY-MM-DD or a time such as 2026-01-05T12:00:00Z is expected.") from None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def _shown(hit: Hit) -> dict[str, Any]:
    names = ("record_id", "kind", "toolset", "session_id", "domain", "text")
    return {
        **{name: getattr(hit, name) for name in names},
        "created_at": format_time(hit.created_at.replace(tzinfo=UTC)),
        "score": round(hit.score, 6),
        "sides": _sides(hit.sides),
        "parts": {part: round(added, 6) for part, added in hit.parts.items()},
    }


def _sides(sides: Mapping[str, tuple[int, float]]) -> dict[str, dict[str, float]]:
    return {side: {"rank": rank, "raw": round(raw, 6)} for side, (rank, raw) in sides.items()}
