"""What a write contradicts, for its answer: earlier memories of which its text changes what they say.

It is advice. The stage `changes` decides what searches say, by the same rule over the same store; on a store that has
applied everything both find the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Any, Literal, NamedTuple

import duckdb
import numpy as np

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.fitting.truncation import Texts
from mcp_ingress.in_flight import InFlight
from processors.embedding.model import Embedder
from processors.embedding.query import EncodedDocument, encoded_document
from processors.memory.read.earlier import (
    Memory,
    changed_by,
    nearest_memories,
    read_ended,
    read_unembedded,
    texts_to_compare,
)
from processors.memory.registry import texts_to_embed
from processors.memory.rules.sentences import MAX_CHARACTERS
from processors.memory.vector_facts import VECTOR_STAGE
from storage.search.records.filter import Filter
from streams.errors import Unavailable
from streams.events import Event
from streams.positions import Freshness
from streams.topics import MEMORY

How = Literal["change", "tension"]
CONTRADICTS: Mapping[str, Any] = {
    "type": "array",
    "description": "Earlier memories of which this one changes what they say, or that it is in tension with",
    "items": {
        "type": "object",
        "properties": {
            "kind": {"type": "string"},
            "id": {"type": "string"},
            "text": {"type": "string"},
            "how": {"type": "string", "enum": ["change", "tension"]},
        },
        "required": ["kind", "id", "text", "how"],
    },
}
CONTRADICTED_TEXTS: Texts = {"text": "{id}"}


class Contradicted(NamedTuple):
    """An earlier memory: kind, record id and text, and by which rule it was found."""

    kind: str
    id: str
    text: str
    how: How = "change"


@dataclass(frozen=True)
class Contradictions:
    """What a write contradicts, the nearest first.

    `is_pending`: its caller's earlier writes were not applied in time, so that one of them may be missing.
    """

    found: Sequence[Contradicted] = ()
    is_pending: bool = False


def contradiction_fields(found: Iterable[Contradicted]) -> dict[str, Any]:
    """The field `contradicts` of an answer; nothing where nothing was found."""
    rows = [each._asdict() for each in found]
    return {"contradicts": rows} if rows else {}


async def find_contradictions(call: Call, event: Event, known: EncodedDocument | None = None) -> Contradictions:
    """What the memory of this event, which is being written, contradicts. `known`: its text's vector, if there is one.

    It waits as long as a search waits for vectors, until what the caller wrote before is applied or in flight. What is
    left to the stage: texts longer than what is compared, and those that a model would have to be asked for over the
    network.
    """
    text = next(iter(texts_to_compare(event).values()), "")
    embedder = call.services.embedder
    if not 0 < len(text) <= MAX_CHARACTERS or embedder is None or (known is None and embedder.info.is_remote):
        return Contradictions()
    wait_s = writes.time_left(call, call.services.limits.vector_wait_s)
    try:
        async with asyncio.timeout(wait_s):
            earlier = call.applied(_not_in_flight(call), timeout_s=wait_s)
            is_applied, encoded = await asyncio.gather(earlier, _encoded(embedder, text, known))
            found = [] if encoded.vector is None else await _find(call, event, text, encoded.vector, encoded.space)
    except (TimeoutError, Unavailable):
        return Contradictions(is_pending=True)
    return Contradictions(found, not (is_applied and call.services.spool.is_empty))


def _not_in_flight(call: Call) -> Freshness:
    """What has to be applied: then all that the caller wrote before is in the store or in flight."""
    token = call.services.part(InFlight).missing(call.read_token.on_topic(MEMORY.name))
    return token.merged(call.connection.unknown_writes)


async def _encoded(embedder: Embedder, text: str, known: EncodedDocument | None) -> EncodedDocument:
    return await encoded_document(embedder, text) if known is None else known


async def _find(call: Call, event: Event, text: str, vector: np.ndarray, space_name: str | None) -> list[Contradicted]:
    """`space_name`: what the vector is of; another model may have become the live one since it was made."""
    services, namespace = call.services, call.namespace
    own = {identity for identity, _ in texts_to_embed(event)}
    moment = event.time.astimezone(UTC).replace(tzinfo=None)
    late = services.applied.lagging(VECTOR_STAGE, MEMORY.name)
    in_flight = changed_by(text, moment, services.part(InFlight).of(namespace, services.applied), own)

    def look(cursor: duckdb.DuckDBPyConnection) -> list[Contradicted]:
        indexes = services.indexes
        space = indexes.space(space_name)
        [near] = nearest_memories(cursor, indexes, space, [(namespace, vector)])
        others = {memory.label: memory for memory in (*read_unembedded(cursor, namespace, late), *near)}
        found = changed_by(text, moment, list(others.values()), own)
        return _live(cursor, call, found) if found else []

    found = await call.read(look)
    known = {each.text for each in found}
    return found + [Contradicted(one.kind, one.record_id, one.text) for one in in_flight if one.text not in known]


def _live(cursor: duckdb.DuckDBPyConnection, call: Call, found: Sequence[Memory]) -> list[Contradicted]:
    """Those that still hold, one for all that state the same: the record that stands for them in a search."""
    records, namespace = call.services.indexes.records, call.namespace
    records.follow_relations(cursor)
    allowed = records.allowed(cursor, Filter(namespace))
    ended = read_ended(cursor, namespace, [memory.record_id for memory in found])
    labels = allowed.of(np.array([memory.label for memory in found if memory.record_id not in ended], np.int64))
    standing = dict.fromkeys(records.clusters.representatives(labels, allowed.labels).tolist())
    hits = records.documents.hits(cursor, namespace, list(standing))
    return [
        Contradicted(hits[label].kind, hits[label].record_id, hits[label].text) for label in standing if label in hits
    ]
