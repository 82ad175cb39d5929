"""inject_context: keep a memory and say what it teaches, measured against what is there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.context_graph.embedders import available_count
from mcp_ingress.toolsets.context_graph.memory_arguments import CONTENT, IMPORTANCE_SCHEMA, MODALITY, memory_request
from mcp_ingress.toolsets.context_graph.pulse import read_means
from processors.context_graph.read.novelty import Novelty, NoveltyMeter, novelty_of
from processors.context_graph.rules.johari import quadrant
from processors.context_graph.rules.learning import (
    CONSOLIDATE_ABOVE,
    STORE_ABOVE,
    Learning,
    intensity,
    learning_score,
)
from processors.context_graph.rules.memories import memory_id_of, text_of
from processors.context_graph.rules.sentiment import emotional_weight
from processors.embedding.query import encoded_document
from streams.errors import Unavailable

FIRST_WINDOW = 1_200
"""Characters of a memory that are measured; its other passages get their vectors after the answer."""
UNMEASURED = "No model or store answers, so that nothing was measured of it; it is kept, and found by its words."
_UTL = {"learningScore": "learning_score", "entropy": "entropy", "coherence": "coherence", "surprise": "surprise"}
"""Names in the answer of what a Learning has."""
_UNIT = {"type": ["number", "null"], "minimum": 0, "maximum": 1}


@dataclass(frozen=True)
class _Measured:
    """What the door found of a memory before it was published; nothing without a model."""

    learning: Learning | None = None
    novelty: Novelty | None = None
    encoded_ms: float | None = None


async def inject_context(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Measure, publish, await the decision, and answer what the decided request has measured."""
    event = memory_request(call, "context.memory.injected", arguments)
    text = text_of(event) or ""
    found = await _measure(call, text)
    findings = {} if found.learning is None else asdict(found.learning)
    published = await writes.publish(call, writes.with_findings(event, findings))
    result, problem = await writes.decision(call, published, event_id=event.id)
    learning = found.learning if result is None else Learning.of(result["learning"] or {})
    own = {
        "fingerprintId": memory_id_of(event) if result is None else result["memory_id"],
        "deduplicated": None if result is None else result["deduplicated"],
        "utl": _utl(learning, found.novelty if learning == found.learning else None),
        "utl_of": "content" if len(text) <= FIRST_WINDOW else "first_window",
        "embedderCount": available_count(call.services),
        "embeddingLatencyMs": found.encoded_ms,
        "johari": {} if learning is None else {"E1": quadrant(learning.entropy, learning.coherence)},
        "shouldStore": None if learning is None else learning.learning_score > STORE_ABOVE,
        "shouldConsolidate": None if learning is None else learning.learning_score > CONSOLIDATE_ABOVE,
    }
    warnings = [] if learning is not None else [UNMEASURED]
    return writes.written(published, own, pending=result is None, problem=problem, warnings=warnings)


async def _measure(call: Call, text: str) -> _Measured:
    """What a text teaches; nothing while no model or store answers, because it is kept all the same."""
    embedder, meter, started = call.services.embedder, call.part(NoveltyMeter), call.clock.monotonic()
    if embedder is None:
        return _Measured()
    name = embedder.info.space
    space = call.services.indexes.space(name)
    # on one core, the model on another
    history = asyncio.ensure_future(call.read(lambda cursor: meter.history(cursor, call.namespace, space, name)))
    vector, _ = await encoded_document(embedder, text[:FIRST_WINDOW])
    encoded_ms = None if vector is None else round((call.clock.monotonic() - started) * 1000, 3)
    try:
        past, means = await history, await read_means(call.services, call.namespace)
    except Unavailable:
        return _Measured(encoded_ms=encoded_ms)
    if vector is None:
        return _Measured()
    novelty = novelty_of(vector, past)
    weight = emotional_weight(text)
    score = learning_score(novelty.entropy, novelty.coherence, weight, means.phase)
    learning = Learning(novelty.entropy, novelty.coherence, novelty.surprise, weight, score)
    return _Measured(learning, novelty, encoded_ms)


def _utl(learning: Learning | None, novelty: Novelty | None) -> dict[str, Any]:
    """The published values, null where nothing was measured, and the raw ones that this call measured."""
    values: dict[str, Any] = {name: getattr(learning, field, None) for name, field in _UTL.items()}
    if learning is not None:
        values |= {"emotionalWeight": learning.emotional_weight, "intensity": intensity(learning.learning_score)}
    if novelty is not None:
        raw: Mapping[str, float] = novelty.raw._asdict()
        values |= {"raw": dict(raw), "comparedWith": novelty.compared}
    return values


TOOL = Tool(
    name="inject_context",
    toolset="context_graph",
    title="Inject context",
    description="Store content in the knowledge graph and measure what it teaches (UTL): `entropy` above 0.5 means "
    "newer than four of five memories were, `coherence` below 0.5 that it fits worse. It is kept whatever its score. "
    "The same content again keeps its fingerprintId.",
    kind="write",
    handler=inject_context,
    memory_operation="create_memory",
    input_schema={
        "type": "object",
        "properties": {
            "content": CONTENT,
            "rationale": {"type": "string", "description": "Why it should be stored"},
            "modality": MODALITY,
            "importance": IMPORTANCE_SCHEMA,
        },
        "required": ["content", "rationale"],
    },
    output_schema=writes.output_schema(
        {
            "fingerprintId": {"type": "string", "description": "The id of the memory"},
            "deduplicated": {
                "type": ["boolean", "null"],
                "description": "The content was stored before, under this id",
            },
            "utl": {
                "type": "object",
                "properties": {
                    "learningScore": _UNIT,
                    "entropy": {**_UNIT, "description": "How new it is"},
                    "coherence": {**_UNIT, "description": "How well it fits"},
                    "surprise": {**_UNIT, "description": "How far the nearest memory of late is"},
                    "raw": {"type": "object", "description": "Entropy and coherence before they were calibrated"},
                },
            },
            "utl_of": {"type": "string", "enum": ["content", "first_window"]},
            "embedderCount": {"type": "integer", "description": "Views that this node can give, of 13"},
            "embeddingLatencyMs": {"type": ["number", "null"]},
            "johari": {"type": "object", "description": "View -> Open, Hidden, Blind or Unknown"},
            "shouldStore": {"type": ["boolean", "null"], "description": "Advice: learningScore above 0.3"},
            "shouldConsolidate": {"type": ["boolean", "null"], "description": "Advice: learningScore above 0.6"},
        }
    ),
)
