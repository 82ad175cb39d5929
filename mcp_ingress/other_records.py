"""How a row of an answer names other records: what states the same, what it changes, what changes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Name = tuple[str, str]
NO_TENSIONS: Mapping[Name, str] = {}
_NAME: dict[str, Any] = {"type": "object", "properties": {"kind": {"type": "string"}, "id": {"type": "string"}}}
_DISPUTE = {
    "type": "object",
    "properties": {**_NAME["properties"], "tension": {"type": "string"}},
    "required": ["kind", "id"],
}
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
        "items": _DISPUTE,
    },
    "disputed_by": {
        "type": "array",
        "description": "Later records that change what this one says, and beliefs in an open tension with it",
        "items": _DISPUTE,
    },
    "superseded_by": {
        **_NAME,
        "required": ["kind", "id"],
        "description": "What holds now in the place of this one, which has ended",
    },
}
"""The properties of a row that `changed` may add."""


def changed(
    earlier: Sequence[Name],
    disputed_by: Sequence[Name],
    tensions: Mapping[Name, str] = NO_TENSIONS,
    superseded_by: Name | None = None,
) -> dict[str, Any]:
    """The fields `earlier`, `disputed_by` and `superseded_by` of a row, each where it says something.

    Given (kind, id) of the other records, and the ids of open tensions with them.
    """
    named = {"earlier": earlier, "disputed_by": disputed_by}
    fields: dict[str, Any] = {
        name: [_name(other) | ({"tension": tensions[other]} if other in tensions else {}) for other in others]
        for name, others in named.items()
        if others
    }
    return fields | ({} if superseded_by is None else {"superseded_by": _name(superseded_by)})


def _name(named: Name) -> dict[str, str]:
    kind, identity = named
    return {"kind": kind, "id": identity}


def repeated(also: Sequence[tuple[str, str]], times: int) -> dict[str, Any]:
    """The fields `also` and `times` of a row, each where it says something. `also`: (kind, id) of other records."""
    names = {"also": [{"kind": kind, "id": identity} for kind, identity in also]} if also else {}
    return names | ({"times": times} if times > 1 else {})
