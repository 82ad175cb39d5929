"""Which memory counts as what: one line for each kind, and one for all kinds of a toolset that has no line of its own.

A memory of a kind that is not named here joins by its toolset's line, or as a thought of unknown origin.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

TableName = Literal["thoughts", "kg_entities", "kg_observations"]
Origin = Literal["human", "tool", "model", "logged"]
TrustTier = Literal["green", "amber", "red"]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a kind belongs. `origin` None: the row's role says it."""

    table: TableName
    origin: Origin | None


SOURCE_TYPES: Mapping[TableName, str] = {"thoughts": "thought", "kg_entities": "kg_entity", "kg_observations": "kg_observation"}
ID_PREFIXES: Mapping[TableName, str] = {"thoughts": "t:", "kg_entities": "e:", "kg_observations": "o:"}

_LOGGED, _BY_ROLE = Place("thoughts", "logged"), Place("thoughts", None)
_MODEL, _TOOL = Place("thoughts", "model"), Place("thoughts", "tool")
_ENTITY, _OBSERVATION = Place("kg_entities", "tool"), Place("kg_observations", "tool")

KINDS: Mapping[tuple[str, str], Place] = {
    **{("talos", kind): _LOGGED for kind in ("journalentry", "reflection", "friction")},
    **{("talos", kind): _ENTITY for kind in ("goal", "capability", "limitation", "sutra", "protocol", "persona", "domain")},
    **{("talos", kind): _OBSERVATION for kind in ("insight", "observation", "belief", "pattern", "decision")},
    ("valence", "exchange"): _BY_ROLE,
    ("valence", "entity"): _ENTITY,
    ("valence", "belief"): _OBSERVATION,
    **{("cognitive_memory", kind): _BY_ROLE for kind in ("raw", "rawmemory", "raw_memory", "dialogue", "message")},
    ("cognitive_memory", "*"): _MODEL,
    ("context_graph", "*"): _TOOL,
}
"""(toolset, kind in lower case, or `*` for all others of the toolset) -> place."""
COMPLETE = ("talos", "valence")
"""Toolsets whose other kinds are no snippets."""


def place_of(toolset: str, kind: str) -> Place | None:
    """Where memories of this kind belong; None for those that are never retrieved."""
    known = KINDS.get((toolset, kind.lower())) or KINDS.get((toolset, "*"))
    return known if known is not None or toolset in COMPLETE else _BY_ROLE


def kinds_of(table: TableName, present: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Of the (toolset, kind) pairs that there are, those of one table."""
    return [pair for pair in present if (place := place_of(*pair)) is not None and place.table == table]


def origin_of(toolset: str, kind: str, role: str | None) -> Origin | None:
    """Who a memory comes from; None when nothing says it."""
    place = place_of(toolset, kind)
    if place is not None and place.origin is not None:
        return place.origin
    if not role:
        return None
    named: Mapping[str, Origin] = {"user": "human", "human": "human", "assistant": "model", "model": "model"}
    return named.get(role.lower(), "tool")


def trust_tier(table: TableName, origin: Origin | None) -> TrustTier:
    """Knowledge is green; thoughts by their origin, and one of unknown origin is trusted least."""
    if table != "thoughts" or origin in ("human", "logged"):
        return "green"
    return "amber" if origin == "tool" else "red"
