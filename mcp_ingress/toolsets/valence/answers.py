"""What the belief tools share: the objects of their answers, schemas, and the check of a draft."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_ingress import writes
from mcp_ingress.fitting.truncation import Texts
from processors.valence.rules.beliefs import Draft, DraftError, read_draft
from processors.valence.rules.confidence import label_of
from processors.valence.rules.entities import ROLES, TYPES
from processors.valence.rules.tensions import SEVERITIES, STATUSES
from processors.valence.rules.tensions import TYPES as TENSION_TYPES
from streams.clock import format_time
from streams.errors import Refused
from streams.events import Event

SEARCH_HINTS: Mapping[str, str] = {
    "belief": "belief_query finds beliefs by what they say",
    "entity": "entity_search finds entities by their names",
    "tension": "tension_list lists the tensions",
}
"""How to come by the id of one that exists."""

_TEXT: Mapping[str, Any] = {"type": "string"}
_TEXT_OR_NULL: Mapping[str, Any] = {"type": ["string", "null"]}
_UNIT: Mapping[str, Any] = {"type": "number", "minimum": 0, "maximum": 1}
_TEXTS: Mapping[str, Any] = {"type": "array", "items": _TEXT}


def _object(properties: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {**properties, **(optional or {})},
        "required": list(properties),
        "additionalProperties": True,
    }


ENTITY_SCHEMA = _object(
    {
        "id": _TEXT,
        "name": _TEXT,
        "type": {"type": "string", "enum": list(TYPES)},
        "description": _TEXT_OR_NULL,
        "aliases": _TEXTS,
        "canonical_id": _TEXT_OR_NULL,
        "created_at": _TEXT,
        "modified_at": _TEXT,
        "belief_count": {"type": "integer", "minimum": 0},
    }
)
BELIEF_SCHEMA = _object(
    {
        "id": _TEXT,
        "content": _TEXT,
        "confidence": {"type": "object", "additionalProperties": _UNIT},
        "confidence_label": _TEXT,
        "domain_path": _TEXTS,
        "status": {"type": "string", "enum": ["active", "disputed", "superseded", "archived"]},
        "valid_from": _TEXT_OR_NULL,
        "valid_until": _TEXT_OR_NULL,
        "created_at": _TEXT,
        "modified_at": _TEXT,
        "source": {"type": ["object", "null"]},
        "extraction_method": _TEXT,
        "supersedes_id": _TEXT_OR_NULL,
        "superseded_by_id": _TEXT_OR_NULL,
        "corroboration_count": {"type": ["integer", "null"], "minimum": 1},
        "entities": {
            "type": "array",
            "items": _object({"entity": {"type": "object"}, "role": {"type": "string", "enum": list(ROLES)}}),
        },
    },
    {
        "relevance_score": _UNIT,
        "score_parts": {"type": "object", "additionalProperties": _UNIT},
        "temporal_freshness_now": _UNIT,
    },
)
TENSION_SCHEMA = _object(
    {
        "id": _TEXT,
        "belief_a_id": _TEXT,
        "belief_b_id": _TEXT,
        "belief_a_content": _TEXT,
        "belief_b_content": _TEXT,
        "type": {"type": "string", "enum": list(TENSION_TYPES)},
        "description": _TEXT,
        "severity": {"type": "string", "enum": list(SEVERITIES)},
        "status": {"type": "string", "enum": list(STATUSES)},
        "resolution": _TEXT_OR_NULL,
        "resolved_at": _TEXT_OR_NULL,
        "detected_at": _TEXT,
        "score": {"type": "number"},
        "materiality": {"type": "number"},
        "suggested_action": _TEXT_OR_NULL,
    }
)
BELIEF_TEXTS: Texts = {"content": "{id}"}
ENTITY_TEXTS: Texts = {"description": "{id}?field=description"}
TENSION_TEXTS: Texts = {
    "description": "{id}?field=description",
    "resolution": "{id}?field=resolution",
    "belief_a_content": "{belief_a_id}",
    "belief_b_content": "{belief_b_id}",
}
BELIEF_OR_NULL: Mapping[str, Any] = {**BELIEF_SCHEMA, "type": ["object", "null"]}
BELIEFS: Mapping[str, Any] = {"type": "array", "items": BELIEF_SCHEMA}
TENSIONS: Mapping[str, Any] = {"type": "array", "items": TENSION_SCHEMA}
CREATION_FIELDS: Mapping[str, Any] = {
    "deduplicated": {"type": ["boolean", "null"], "description": "Whether a belief that is held says this already."},
    "action": {"enum": ["created", "reinforced", "unchanged", None]},
    "corroboration_count": {"type": ["integer", "null"], "minimum": 1},
}


def checked_draft(arguments: Mapping[str, Any], **changes: Any) -> Draft:
    """The draft that the arguments make. Refused with the argument's name and what it may be."""
    try:
        return read_draft({**arguments, **changes})
    except DraftError as error:
        raise writes.invalid(str(error), error.parameter, error.allowed) from None


def not_found(code: str, what: str, identity: str) -> Refused:
    """The refusal of an id that nothing has."""
    return Refused(f"There is no {what} {identity}; {SEARCH_HINTS[what]}.", code=code, details={f"{what}_id": identity})


def submitted(request: Event, belief_id: str, draft: Draft, **fields: Any) -> dict[str, Any]:
    """A belief as it was handed in, while what became of it is not known."""
    now = format_time(request.time)
    return {
        "id": belief_id,
        "content": draft.content,
        "confidence": draft.confidence.as_object(),
        "confidence_label": label_of(draft.confidence.overall),
        "domain_path": list(draft.domain_path),
        "status": "active",
        "valid_from": None if draft.valid_from is None else draft.valid_from.isoformat() + "Z",
        "valid_until": None,
        "created_at": now,
        "modified_at": now,
        "source": None,
        "extraction_method": draft.extraction_method,
        "supersedes_id": None,
        "superseded_by_id": None,
        "corroboration_count": None,
        "entities": [],
        **fields,
    }
