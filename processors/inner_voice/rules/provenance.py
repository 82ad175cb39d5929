"""Whom a snippet comes from, and how far it is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from processors.memory.kind import Origin, Place, TableName

TrustTier = Literal["green", "amber", "red"]

SOURCE_TYPES: Mapping[TableName, str] = {
    "thoughts": "thought",
    "kg_entities": "kg_entity",
    "kg_observations": "kg_observation",
}
ID_PREFIXES: Mapping[TableName, str] = {"thoughts": "t:", "kg_entities": "e:", "kg_observations": "o:"}
_ORIGINS: Mapping[str, Origin] = {"user": "human", "human": "human", "assistant": "model", "model": "model"}


def origin_of(place: Place, role: str | None) -> Origin | None:
    """The place's origin, else that of the role that spoke; None when nothing says it."""
    if place.origin is not None:
        return place.origin
    return _ORIGINS.get(role.lower(), "tool") if role else None


def trust_tier(table: TableName, origin: Origin | None) -> TrustTier:
    """Knowledge is green; thoughts by their origin, and one of unknown origin is trusted least."""
    if table != "thoughts" or origin in ("human", "logged"):
        return "green"
    return "amber" if origin == "tool" else "red"
