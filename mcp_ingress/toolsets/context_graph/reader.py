"""The reader of fingerprints that a tool of this toolset compares with."""

from __future__ import annotations

import duckdb

from mcp_ingress.call import Call
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache


def reader_of(call: Call, cursor: duckdb.DuckDBPyConnection) -> FingerprintReader:
    """The reader of the call's namespace, for one read."""
    services, cache = call.services, call.part(FingerprintCache)
    return FingerprintReader(cursor, services.indexes, services.embedder, cache, call.namespace, services.may_hold)
