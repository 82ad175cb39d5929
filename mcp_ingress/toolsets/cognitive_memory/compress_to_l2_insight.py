"""compress_to_l2_insight: keep what a dialogue comes to, from which lines, and how densely it is said."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import duckdb

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.cognitive_memory import answers
from processors.cognitive.config import CognitiveConfig
from processors.cognitive.rules.identifiers import L2, event_number, record_id
from streams.clock import format_time
from streams.errors import EmbedderUnavailable


async def compress(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Publish; whether the sources exist is decided in log order. The answer waits for the row and its vector."""
    answers.checked_texts(arguments, "content")
    coverage = await _coverage(call, arguments["content"], arguments["source_ids"])
    fields = {"content": arguments["content"], "source_ids": arguments["source_ids"]}
    found = coverage | {"fidelity_threshold": call.part(CognitiveConfig).fidelity_threshold}
    event = writes.with_findings(writes.request(call, "cm.l2.stored", fields), found)
    published, result, status = await answers.write_embedded(call, event, record_id(L2, event_number(event)))
    fallback = {
        "id": event_number(event),
        "fidelity_score": None,
        "timestamp": format_time(event.time),
        "metadata": None,
    }
    return answers.written(published, {**(result or fallback), "embedding_status": status}, pending=result is None)


async def _coverage(call: Call, content: str, source_ids: Sequence[int]) -> dict[str, Any]:
    """How much of its sources the insight means, by the node's model. Nothing without sources or without a model."""
    embedder = call.services.embedder
    if not source_ids or embedder is None or not await call.fresh():
        return {}
    texts = await call.read(functools.partial(_texts, namespace=call.namespace, source_ids=source_ids))
    if not texts:
        return {}
    try:
        vectors = await answers.encode_stored(call, content, "\n".join(texts))
    except EmbedderUnavailable:
        return {}  # the insight is kept all the same
    return {
        "source_coverage": round(max(0.0, float(vectors[0] @ vectors[1])), 6),
        "coverage_model": embedder.info.model_id,
    }


def _texts(cursor: duckdb.DuckDBPyConnection, namespace: str, source_ids: Sequence[int]) -> list[str]:
    rows = cursor.execute(
        "SELECT content FROM l0_raw WHERE namespace = ? AND id IN (SELECT unnest(?::BIGINT[])) "
        'ORDER BY timestamp, "offset", idx',
        [namespace, list(source_ids)],
    ).fetchall()
    return [text for (text,) in rows]


_METADATA = {
    "type": ["object", "null"],
    "properties": {
        "fidelity_score": answers.NUMBER,
        "fidelity_warning": answers.FLAG,
        "warning_message": answers.TEXT,
        "source_coverage": answers.NUMBER,
    },
}

TOOL = Tool(
    name="compress_to_l2_insight",
    toolset="cognitive_memory",
    title="Compress to an insight",
    description="Compress dialogue data to L2 insight with OpenAI embedding and semantic fidelity check. "
    "The embedding is made by the model of this node; no provider is called unless its settings name one.",
    kind="write",
    handler=compress,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "Compressed insight content to store with embedding"},
            "source_ids": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "Array of L0 raw memory IDs that were compressed into this insight",
            },
        },
        "required": ["content", "source_ids"],
    },
    output_schema=answers.output_schema(
        {
            "id": answers.ID,
            "embedding_status": answers.EMBEDDING_STATUS,
            "fidelity_score": answers.NUMBER,
            "timestamp": answers.TEXT,
            "metadata": _METADATA,
        }
    ),
)
