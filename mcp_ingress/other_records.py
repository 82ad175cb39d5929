"""How a row of an answer names other records: what states the same, what it changes, what changes it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_NAME = {"type": "object", "properties": {"kind": {"type": "string"}, "id": {"type": "string"}}}
REPEATED: dict[str, Any] = {
    "also": {
        "type": "array",
        "description": "Other records that state the same, newest first",
        "items": {**_NAME, "required": ["kind", "id"]},
    },
    "times": {"type": "integer", "minimum": 2, "description": "How often it was stated, where more than once"},
}
"""The properties of a row that `repeated` may add."""
CHANGED: dict[str, Any] = {
    "earlier": {
        "type": "array",
        "description": "Earlier records of which this one changes what they say",
        "items": {**_NAME, "required": ["kind", "id"]},
    },
    "disputed_by": {
        "type": "array",
        "description": "Later records that change what this one says",
        "items": {**_NAME, "required": ["kind", "id"]},
    },
}
"""The properties of a row that `changed` may add."""


def changed(earlier: Sequence[tuple[str, str]], disputed_by: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """The fields `earlier` and `disputed_by` of a row, each where it says something.

    Given (kind, id) of the other records.
    """
    named = {"earlier": earlier, "disputed_by": disputed_by}
    return {
        name: [{"kind": kind, "id": identity} for kind, identity in others] for name, others in named.items() if others
    }


def repeated(also: Sequence[tuple[str, str]], times: int) -> dict[str, Any]:
    """The fields `also` and `times` of a row, each where it says something. `also`: (kind, id) of other records."""
    names = {"also": [{"kind": kind, "id": identity} for kind, identity in also]} if also else {}
    return names | ({"times": times} if times > 1 else {})
