"""journal_write: keep an entry, and say at once what is found in it and what it contradicts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC
from typing import Any

from mcp_ingress import writes
from mcp_ingress.call import Call
from mcp_ingress.contradictions import CONTRADICTED_TEXTS, CONTRADICTS, contradiction_fields, find_contradictions
from mcp_ingress.fitting.truncation import Truncation
from mcp_ingress.tool import Tool
from mcp_ingress.toolsets.talos import answers
from processors.memory.read.earlier import Memory
from processors.talos.rules.extraction import Entity, extract
from processors.talos.rules.identifiers import entry_id
from processors.talos.rules.ontology import PRELOADED, domain_id, is_known_domain
from streams.errors import Refused
from streams.event_types.talos import CATEGORIES
from streams.events import Event
from streams.ids import document_label


async def write_entry(call: Call, arguments: dict[str, Any], *, open_session_id: str | None = None) -> dict[str, Any]:
    """Publish the entry and answer from the same pure extraction that the `extract` stage runs.

    Meanwhile the earlier memories are found of which it changes what they say. `open_session_id`: of the connection,
    where the arguments name none.
    """
    event = _written(call, arguments, open_session_id)
    session_id, category, domain = (event.data.get(name) for name in ("session_id", "category", "domain"))
    found = extract(event)
    main = found.entities[0]
    knowledge = {"id": main.id, "category": category, "domain": _domain_term(domain), "confidence": main.confidence}
    published, contradictions = await asyncio.gather(
        answers.publish_entry(call, event, f"knowledge.{category}", knowledge, _stated(event, main)),
        find_contradictions(call, event),
    )
    warnings = await answers.unknown_session_warnings(call, session_id)
    relations = [relation for relation in found.relations if not (warnings and relation.from_id == session_id)]
    fields = {
        "extracted_entities": [{"type": entity.label, "id": entity.id} for entity in found.entities],
        "extracted_relationships": [{"type": r.type, "from": r.from_id, "to": r.to_id} for r in relations],
    }
    answer = {"entry_id": entry_id(event), **fields, **contradiction_fields(contradictions.found)}
    return writes.written(published, answer, pending=contradictions.is_pending, warnings=warnings)


def _written(call: Call, arguments: Mapping[str, Any], open_session_id: str | None) -> Event:
    """The entry as an event. Its id does not depend on the open session: repeated on another connection it is one."""
    session_id, category = answers.checked_session_id(arguments.get("session_id")), arguments["category"]
    domain = (arguments.get("domain") or "").strip() or None
    given = {"category": category, "session_id": session_id, "domain": domain, "tags": arguments.get("tags")}
    confidence = _checked_confidence(arguments.get("confidence"))
    entry = {"content": writes.checked_text(arguments, "content"), **given, "confidence": confidence}
    event = writes.request(call, "talos.journal.written", entry, subject=session_id)
    if session_id is not None or open_session_id is None:
        return event
    return writes.with_findings(event, {"session_id": open_session_id}).changed(subject=open_session_id)


def _stated(event: Event, main: Entity) -> Memory:
    """The entry as searches will name it: by the entity that it makes."""
    label = document_label(event.namespace, main.id)
    return Memory(label, main.id, main.label, event.data["content"], event.time.astimezone(UTC).replace(tzinfo=None))


def _domain_term(domain: str | None) -> str | None:
    """A domain's name in telemetry: one of the ontology's terms, or `other`.

    Telemetry holds no text of the agent's own.
    """
    return None if domain is None else PRELOADED[domain_id(domain)][1] if is_known_domain(domain) else "other"


def _checked_confidence(confidence: float | None) -> float | None:
    if confidence is not None and not 0 <= confidence <= 1:
        raise Refused(f"The confidence {confidence} is outside 0.0 to 1.0.", code="invalid_confidence")
    return None if confidence is None else float(confidence)


TOOL = Tool(
    name="journal_write",
    toolset="talos",
    title="Write a journal entry",
    description="Write a journal entry. Graphiti extracts entities and relationships. "
    "Use for insights, observations, friction, reflections.",
    kind="write",
    handler=write_entry,
    memory_operation="create_memory",
    truncation=Truncation({"contradicts": CONTRADICTED_TEXTS}),
    input_schema={
        "type": "object",
        "properties": {
            "content": {"type": "string", "description": "The journal entry text (natural language)"},
            "category": {**answers.category_schema(CATEGORIES), "description": "Primary category hint for extraction"},
            "session_id": {"type": "string", "description": "Associated session (for PRODUCED relationship)"},
            "domain": {"type": "string", "description": "Domain classification hint"},
            "confidence": {"type": "number", "description": "Confidence level for insights (0.0-1.0)"},
        },
        "required": ["content", "category"],
    },
    output_schema=writes.output_schema(
        {
            "entry_id": {"type": "string"},
            "extracted_entities": answers.IDS_SCHEMA,
            "contradicts": CONTRADICTS,
            "extracted_relationships": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {"type": {"type": "string"}, "from": {"type": "string"}, "to": {"type": "string"}},
                    "required": ["type", "from", "to"],
                },
            },
        }
    ),
)
