"""What the Cognitive Memory tools share: the form of their answers, and the model's vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.services import Published
from mcp_ingress.spool import SPOOLED
from processors.cognitive.config import CognitiveConfig
from processors.embedding.model import Embedder, encode_documents
from streams.errors import EmbedderUnavailable, KeyMissing
from streams.events import Event

ID: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 1, "maximum": 2**53 - 1}
TEXT: Mapping[str, Any] = {"type": ["string", "null"]}
NUMBER: Mapping[str, Any] = {"type": ["number", "null"]}
COUNT: Mapping[str, Any] = {"type": ["integer", "null"], "minimum": 0}
FLAG: Mapping[str, Any] = {"type": ["boolean", "null"]}
EMBEDDING_STATUS: Mapping[str, Any] = {"enum": ["success", "retried", "pending", "failed"]}
NUMBERS: Mapping[str, Any] = {"type": ["array", "null"], "items": {"type": "number"}}


def output_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an answer.

    It has the tool's own fields, those of a pending or stale answer, and those of an error.
    """
    status = {"type": "string", "enum": ["success", "ok"]}
    error = {"error": {"type": "string"}, "details": {"type": "string"}}
    shared = {"status": status, **writes.FRESHNESS_FIELDS, **writes.NOTE_FIELDS, **error}
    return {"type": "object", "properties": {**shared, **properties}}


def checked_texts(arguments: Mapping[str, Any], *names: str) -> None:
    """Refused when one of these texts is blank."""
    for name in names:
        writes.checked_text(arguments, name, most=None)


async def write(call: Call, event: Event) -> tuple[Published, Mapping[str, Any] | None]:
    """Publish, and wait for the decision."""
    published = await writes.publish(call, event)
    return published, await writes.decided(call, published)


async def write_embedded(call: Call, event: Event, record_id: str) -> tuple[Published, Mapping[str, Any] | None, str]:
    """Publish, wait for the decision and for the record's vector. The third says what became of the vector.

    Raises KeyMissing, before anything is published, when a provider is to embed and its key is not there.
    """
    if (missing := call.part(CognitiveConfig).missing_key) is not None:
        raise KeyMissing(missing)
    published = await writes.publish(call, event)
    result, is_embedded = await asyncio.gather(
        writes.decided(call, published), writes.caught_up(call, published, "embed")
    )
    embedder = call.services.embedder
    if embedder is None:
        return published, result, "failed"
    if not is_embedded or result is None:
        return published, result, "pending"
    retries = (call.namespace, record_id, embedder.info.space)
    was_retried = call.services.may_hold("embedding_retries", retries) and await call.read(
        lambda cursor: _has_retries(cursor, retries)
    )
    return published, result, "retried" if was_retried else "success"


def _has_retries(cursor: duckdb.DuckDBPyConnection, retries: tuple[str, str, str]) -> bool:
    """Whether the model had to be asked more than once for the vector of this namespace, record and space."""
    statement = "SELECT 1 FROM embedding_retries WHERE namespace = ? AND record_id = ? AND space = ?"
    return bool(cursor.execute(statement, list(retries)).fetchall())


def written(published: Published, fields: Mapping[str, Any], *, pending: bool = False) -> dict[str, Any]:
    """A write's answer: its fields and the token always."""
    notes: dict[str, Any] = {"pending": True} if pending else {}
    if published.spooled:
        notes |= {"spooled": True, "message": SPOOLED}
    return {**fields, **notes, "status": "success", "freshness": published.freshness.to_json()}


async def encode_question(call: Call, text: str) -> tuple[np.ndarray, str]:
    """The unit vector of a query, and its space. Raises EmbedderUnavailable when the node runs without a model."""
    embedder = embedder_of(call)
    vectors: np.ndarray = await asyncio.get_running_loop().run_in_executor(
        None, embedder.encode, [embedder.info.query_prefix + text]
    )
    return vectors[0], embedder.info.space


async def encode_stored(call: Call, *texts: str) -> np.ndarray:
    """A unit vector a text, as they are stored. Raises EmbedderUnavailable when the node runs without a model."""
    vectors: np.ndarray = await asyncio.get_running_loop().run_in_executor(
        None, encode_documents, embedder_of(call), list(texts)
    )
    return vectors


def embedder_of(call: Call) -> Embedder:
    """The node's model. Raises EmbedderUnavailable when it has none."""
    if call.services.embedder is None:
        raise EmbedderUnavailable("The node runs without an embedding model; the setting `embedder` names one.")
    return call.services.embedder
