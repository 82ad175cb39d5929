"""The event types, a module a domain. Each module has `EVENT_TYPES`; adding one here is all it takes.

Schemas say what is needed and of which type; unknown fields are kept (additive change within a major version).
"""

from __future__ import annotations

from typing import Any

TEXT: dict[str, Any] = {"type": "string"}
FILLED: dict[str, Any] = {"type": "string", "minLength": 1}
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
COUNT: dict[str, Any] = {"type": ["integer", "null"], "minimum": 0}
OPTIONAL: dict[str, Any] = {"type": ["string", "null"]}
FLAG: dict[str, Any] = {"type": ["boolean", "null"]}
UNIT: dict[str, Any] = {"type": ["number", "null"], "minimum": 0, "maximum": 1}
TEXTS: dict[str, Any] = {"type": ["array", "null"], "items": TEXT}
TIME: dict[str, Any] = {"type": ["string", "null"], "maxLength": 64}


def obj(required: dict[str, Any], optional: dict[str, Any] | None = None) -> dict[str, Any]:
    """An object schema: the required fields, the optional ones, and anything else."""
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


def array(items: dict[str, Any]) -> dict[str, Any]:
    """An array schema."""
    return {"type": "array", "items": items}
