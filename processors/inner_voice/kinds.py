"""Which memory counts as what: one line for each kind that a processor writes into `documents`.

A test fails when a processor writes a kind that has no line here. A kind of a toolset that this version does not know joins as
a thought of unknown origin, which is trusted least.
"""

from __future__ import annotations

from collections.abc import Mapping
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


SOURCE_TYPES: Mapping[TableName, str] = {
    "thoughts": "thought",
    "kg_entities": "kg_entity",
    "kg_observations": "kg_observation",
}
ID_PREFIXES: Mapping[TableName, str] = {"thoughts": "t:", "kg_entities": "e:", "kg_observations": "o:"}

_LOGGED, _BY_ROLE = Place("thoughts", "logged"), Place("thoughts", None)
_MODEL, _TOOL = Place("thoughts", "model"), Place("thoughts", "tool")
_ENTITY, _OBSERVATION = Place("kg_entities", "tool"), Place("kg_observations", "tool")

KINDS: Mapping[tuple[str, str], Place | None] = {
    **{("talos", kind): _LOGGED for kind in ("JournalEntry", "Reflection", "Friction")},
    **{
        ("talos", kind): _ENTITY
        for kind in ("Goal", "Capability", "Limitation", "Sutra", "Protocol", "Persona", "Domain")
    },
    **{("talos", kind): _OBSERVATION for kind in ("Insight", "Observation", "Belief", "Pattern", "Decision")},
    **{("talos", kind): None for kind in ("Session", "Experience", "OperationalState", "Tool", "Question", "Human")},
    ("valence", "Exchange"): _BY_ROLE,
    ("valence", "Entity"): _ENTITY,
    **{("valence", kind): _OBSERVATION for kind in ("Belief", "Pattern", "Insight")},
    ("cognitive_memory", "raw_dialogue"): _BY_ROLE,
    **{("cognitive_memory", kind): _MODEL for kind in ("l2_insight", "episode", "working_memory")},
}
"""(toolset, kind) -> place; None: never a snippet, as the specification names no table for it."""
TOOLS = ("context_graph",)
"""Toolsets of which every memory is a thought that a tool noted."""


def place_of(toolset: str, kind: str) -> Place | None:
    """Where memories of this kind belong; None for those that are never retrieved."""
    if (toolset, kind) in KINDS:
        return KINDS[toolset, kind]
    return _TOOL if toolset in TOOLS else _BY_ROLE


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
