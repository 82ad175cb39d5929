"""The reader of fingerprints that a tool of this toolset compares with."""

from __future__ import annotations

import duckdb

from mcp_ingress.call import Call
from mcp_ingress.services import Services
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache


def reader_of(call: Call, cursor: duckdb.DuckDBPyConnection) -> FingerprintReader:
    """The reader of the call's namespace, for one read."""
    return reader_for(call.services, call.namespace, cursor)


def reader_for(services: Services, namespace: str, cursor: duckdb.DuckDBPyConnection) -> FingerprintReader:
    """The reader of a namespace, for one read."""
    cache = services.part(FingerprintCache)
    return FingerprintReader(cursor, services.indexes, services.embedder, cache, namespace, services.may_hold)
