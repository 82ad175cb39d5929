"""Makes an answer fit, with the passages of its long texts chosen by meaning where they have vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import duckdb
import numpy as np

from mcp_ingress.call import Call
from mcp_ingress.fitting.fit import fit, long_texts
from mcp_ingress.fitting.passage import Span
from mcp_ingress.fitting.truncation import MEMORY_URI, Truncation
from processors.embedding.query import encoded_query
from storage.search.index_set import IndexSet
from streams.errors import Unavailable
from streams.ids import document_label


async def fitted(
    call: Call, truncation: Truncation | None, arguments: Mapping[str, Any], body: Mapping[str, Any]
) -> dict[str, Any]:
    """A handler's answer, cut to what fits: of long texts the passages that fit the query best."""
    nearest: Mapping[str, Span] = {}
    uris = [] if truncation is None else list(long_texts(body, truncation))
    if not uris:
        return fit(body, truncation, arguments)
    if truncation is not None and (query := arguments.get(truncation.query or "")):
        nearest = await _nearest(call, str(query), uris)
    # a long text takes milliseconds, and the event loop serves others
    return await asyncio.to_thread(fit, body, truncation, arguments, nearest.get)


async def _nearest(call: Call, query: str, uris: Sequence[str]) -> dict[str, Span]:
    """Of each memory with vectors of passages the nearest to the query; nothing while a part is down."""
    vector, _, space = await encoded_query(call.services.embedder, query)
    if vector is None:
        return {}
    ids = {uri: unquote(uri.removeprefix(f"{MEMORY_URI}/")) for uri in uris if "?" not in uri}
    labels = {uri: document_label(call.namespace, identity) for uri, identity in ids.items()}
    try:
        return await call.read(lambda cursor: _best(cursor, call.services.indexes, vector, space, labels))
    except Unavailable:
        return {}


def _best(
    cursor: duckdb.DuckDBPyConnection, indexes: IndexSet, vector: np.ndarray, space: str | None, of: Mapping[str, int]
) -> dict[str, Span]:
    found: dict[str, Span] = {}
    known = indexes.records.passages
    nearby = indexes.space(space)
    for uri, label in of.items():
        parts = np.array(known.parts(label), np.int64)
        cosines = nearby.similarities(vector, parts) if len(parts) else parts
        if len(parts) and not np.isnan(cosines).all():
            passage = known.passage(int(parts[np.nanargmax(cosines)]))
            found |= {} if passage is None else {uri: (passage.start, passage.end)}
    return found
