"""Entities by name: types, roles, keys for the look-up, and the form that equal names share."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

TYPES = ("person", "organization", "tool", "concept", "project", "location", "service")
ROLES = ("subject", "object", "context")
DEFAULT_TYPE, DEFAULT_ROLE = "concept", "subject"
_KEY_SIGNS = "+#"


class EntityError(ValueError):
    """An entity that cannot be linked; the message says why, as a sentence. `allowed` lists what is known."""

    def __init__(self, message: str, allowed: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.allowed = allowed


@dataclass(frozen=True, slots=True)
class EntityName:
    """An entity as a caller names it.

    `type` is None when it is not said: then the most linked of that name is meant.
    """

    name: str
    type: str | None = None
    role: str = DEFAULT_ROLE

    @property
    def key(self) -> str:
        return name_key(self.name)


def read_entities(given: Iterable[Any] | None) -> list[EntityName]:
    """The entities of a call, each (name, type, role) once. A plain text is a name. Raises EntityError."""
    found: dict[EntityName, None] = {}
    for item in given or ():
        fields: Mapping[str, Any] = (
            {"name": item} if isinstance(item, str) else item if isinstance(item, Mapping) else {}
        )
        name, kind, role = fields.get("name"), fields.get("type"), fields.get("role")
        if not isinstance(name, str) or not name.strip():
            raise EntityError("Each of the entities needs a `name` that is not blank.")
        if kind is not None and kind not in TYPES:
            raise EntityError(
                f"The entity type {str(kind)[:40]!r} is not known; choose one of {', '.join(TYPES)}.", TYPES
            )
        if role is not None and role not in ROLES:
            raise EntityError(
                f"The entity role {str(role)[:40]!r} is not known; choose one of {', '.join(ROLES)}.", ROLES
            )
        found[EntityName(" ".join(name.split()), kind, role or DEFAULT_ROLE)] = None
    return list(found)


def name_key(name: str) -> str:
    """The name as it is looked up: compatibility forms, case and runs of spaces do not matter."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def same_form(name: str) -> str:
    """The form that names of one thing have in common.

    Letters, digits, + and # only: `Node.js`, `node js` and `NodeJS` have one form.
    """
    key = name_key(name)
    return "".join(character for character in key if character.isalnum() or character in _KEY_SIGNS) or key
