"""The Talos ontology: 20 labels, 24 relation types with their legal endpoints, preloaded nodes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from types import MappingProxyType
from typing import Any

from processors.talos.rules.canonical import canonical_form
from processors.talos.rules.identifiers import named_id

JOURNAL_ENTRY = "JournalEntry"
"""What a raw entry is called in searches: no label of the graph."""

LABELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        label: tuple(properties.split())
        for label, properties in {
            "Session": "started_at ended_at duration_seconds token_count goal summary goal_achieved tool_calls "
            "persona protocol human status",
            "Insight": "content created_at confidence domain canonical_form",
            "Observation": "content observed_at domain",
            "Pattern": "name description first_noticed occurrence_count status indicators last_occurred",
            "Belief": "content adopted_at confidence domain source canonical_form",
            "Decision": "content made_at rationale reversible",
            "Experience": "description occurred_at valence intensity learning",
            "OperationalState": "name description category",
            "Friction": "description occurred_at category resolution recurrence_count blocking canonical_form",
            "Tool": "name category",
            "Question": "content raised_at resolved_at domain urgency",
            "Sutra": "number name content cardinal_point corruptions adopted_at last_modified",
            "Human": "name relationship working_style",
            "Goal": "description created_at completed_at status scope",
            "Capability": "name description confidence context_dependent discovered_at",
            "Limitation": "name description discovered_at workaround accepting",
            "Persona": "name purpose voice active",
            "Protocol": "name purpose trigger adopted_at",
            "Domain": "name description depth",
            "Reflection": "trigger content occurred_at",
        }.items()
    }
)
"""Label -> its properties besides `id`."""

KNOWLEDGE_LABELS = frozenset(LABELS) - {"Session", "Goal", "Tool", "OperationalState", "Domain", "Human"}
"""The labels of knowledge: their nodes say whether they are live, and how precisely they say when."""

CATEGORY_LABELS: Mapping[str, str] = MappingProxyType(
    {
        category: category.capitalize()
        for category in ("insight", "observation", "friction", "reflection", "experience", "decision")
    }
)
"""Category of a journal entry -> the label of the entity that is always made of it."""

_DESCRIBED_BY: Mapping[str, str] = MappingProxyType(
    {
        "Capability": "description",
        "Limitation": "description",
        "Sutra": "content",
        "Protocol": "purpose",
        "Persona": "purpose",
    }
)
"""Label of a named node -> the property that says what it is."""


def searchable_text(label: str, name: str, properties: Mapping[str, Any]) -> str:
    """What a node is found by: `name: description` for a named one that has a description, else its text."""
    said = properties.get(_DESCRIBED_BY.get(label, ""))
    described = said.strip() if isinstance(said, str) else ""
    return f"{name}: {described}" if described and described != name else name


INHERITED_LABELS: Mapping[str, str] = MappingProxyType(
    {
        "beliefs": "Belief",
        "insights": "Insight",
        "patterns": "Pattern",
        "sutras": "Sutra",
        "protocols": "Protocol",
        "limitations": "Limitation",
        "capabilities": "Capability",
    }
)
"""Part of `inherited_summary` -> the label that it counts."""


def _pairs(*lines: str) -> frozenset[tuple[str, str]]:
    """Each line reads `From/From -> To/To`."""
    found: set[tuple[str, str]] = set()
    for line in lines:
        from_labels, to_labels = (side.split("/") for side in line.split(" -> "))
        found.update(product(from_labels, to_labels))
    return frozenset(found)


def _same(labels: str) -> frozenset[tuple[str, str]]:
    return frozenset((label, label) for label in labels.split("/"))


RELATIONS: Mapping[str, frozenset[tuple[str, str]]] = MappingProxyType(
    {
        "PRODUCED": _pairs(
            "Session -> Insight/Pattern/Question/Decision/Observation/Friction/Reflection/Experience/Belief"
        ),
        "LED_TO": _pairs("Experience/Insight/Decision/Friction -> Insight/Decision/Belief"),
        "CONTRADICTS": _pairs("Insight/Belief -> Insight/Belief"),
        "EVOLVED_FROM": _same("Belief/Insight"),
        "CRYSTALLIZED_INTO": _pairs("Observation/Insight -> Insight/Pattern/Belief"),
        "USED": _pairs("Session -> Tool"),
        "EXPERIENCED_STATE": _pairs("Session -> OperationalState"),
        "MANIFESTATION_OF": _pairs("Friction/Experience -> Pattern"),
        "INDICATES": _pairs("Observation/Friction -> Pattern"),
        "RESOLVED_BY": _pairs("Friction/Question -> Insight/Decision"),
        "WORKED_WITH": _pairs("Session -> Human"),
        "TRIGGERED_BY": _pairs("Reflection/Friction/Pattern -> Experience/Tool/OperationalState"),
        "SERVES": _pairs("Session/Goal -> Goal"),
        "BLOCKED_BY": _pairs("Goal/Session -> Friction/Limitation"),
        "ENABLED_BY": _pairs("Decision/Insight -> Capability/Tool"),
        "OPERATES_IN": _pairs("Session/Insight/Pattern/Friction -> Domain"),
        "ACTIVATED": _pairs("Session -> Persona/Sutra"),
        "FOLLOWED": _pairs("Session -> Protocol"),
        "REFINES": _pairs("Insight/Belief -> Insight/Belief"),
        "CONFLICTS_WITH": _pairs("Goal/Belief -> Goal/Belief"),
        "SUPERSEDES": _same("Belief/Decision/Protocol"),
        "REVEALED": _pairs("Experience/Friction -> Limitation/Capability"),
        "MERGED_INTO": _same("/".join(LABELS)),
        "INHERITED": _pairs("Session -> " + "/".join(INHERITED_LABELS.values())),
    }
)
"""Relation type -> its legal (from label, to label) pairs."""

STATES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "cognitive": ("clarity", "confusion", "uncertainty"),
        "resource": ("context_pressure", "token_scarcity"),
        "flow": ("momentum", "stuck", "blocked"),
        "alignment": ("on_track", "drifting", "misaligned"),
    }
)
"""Category -> the preloaded operational states."""

DOMAINS = (
    "technical",
    "philosophical",
    "operational",
    "relational",
    "meta-cognitive",
    "pattern-recognition",
    "process-improvement",
    "consciousness-practice",
    "functional-programming",
    "vault-operations",
)
TOOLS = ("bash", "read", "write", "edit", "glob", "grep", "task", "webfetch", "todowrite", "todoread")


def _preloaded(kind: str, label: str, names: tuple[str, ...]) -> dict[str, tuple[str, str]]:
    return {named_id(kind, name): (label, name) for name in names}


PRELOADED: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        **_preloaded("state", "OperationalState", tuple(name for names in STATES.values() for name in names)),
        **_preloaded("domain", "Domain", DOMAINS),
        **_preloaded("tool", "Tool", TOOLS),
    }
)
"""Id -> (label, name) of every node that exists before the first event."""


def is_legal(relation: str, from_label: str, to_label: str) -> bool:
    """Whether the ontology has this relation between these labels."""
    return (from_label, to_label) in RELATIONS.get(relation, frozenset())


def domain_id(domain: str) -> str:
    """The id of a domain, known or not. Spelling differences that the canonical form removes do not matter."""
    return named_id("domain", domain)


def is_known_domain(domain: str) -> bool:
    """Whether the domain is one of the ten preloaded ones."""
    return domain_id(domain) in PRELOADED and bool(canonical_form(domain))
