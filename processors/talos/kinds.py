"""Declares Talos' kinds: journal entries, and the entities that are found in texts or imported."""

from __future__ import annotations

from collections.abc import Sequence

from processors.memory.kind import ENTITY, LOGGED_THOUGHT, OBSERVATION, Kind, TagSource, Texts
from processors.talos.rules.extraction import (
    FRICTION_LOGGED,
    JOURNAL_WRITTEN,
    KNOWLEDGE_IMPORTED,
    REFLECTION_WRITTEN,
    texts_to_embed,
)
from processors.talos.rules.identifiers import entry_id, goal_id, named_id, session_names
from processors.talos.rules.ontology import JOURNAL_ENTRY
from streams.event_types.talos import JOURNAL_CORRECTED
from streams.events import Event, wire_type

TOOLSET = "talos"
SESSION_OPENED = wire_type("talos.session.opened")


def _texts_of_session(event: Event) -> Sequence[tuple[str, str]]:
    """The goal of a session, and the names of its persona, protocol and human."""
    goal = event.data["goal"].strip()
    if not goal:
        return []
    return [(goal_id(goal), goal), *((named_id(label.lower(), name), name) for label, name in session_names(event))]


def _corrected(event: Event) -> Sequence[tuple[str, str]]:
    content = event.data["content"]
    return [(entry_id(event), content)] if content.strip() else []


KINDS = (
    Kind(
        TOOLSET,
        (JOURNAL_ENTRY,),
        LOGGED_THOUGHT,
        Texts({JOURNAL_WRITTEN: texts_to_embed, JOURNAL_CORRECTED: _corrected}),
        TagSource(
            "SELECT namespace, entry_id AS record_id, category AS tag FROM journal UNION ALL "
            "SELECT v.namespace, v.entry_id, t.tag FROM journal_versions v "
            "JOIN document_tags t ON t.namespace = v.namespace AND t.record_id = v.root_id",
            is_category=True,
        ),
        ended="SELECT namespace, record_id FROM corrections",
        is_source=True,
    ),
    Kind(
        TOOLSET,
        ("Friction", "Reflection"),
        LOGGED_THOUGHT,
        Texts({FRICTION_LOGGED: texts_to_embed, REFLECTION_WRITTEN: texts_to_embed}),
        TagSource(
            "SELECT namespace, entity_id AS record_id, category AS tag FROM entities WHERE category IS NOT NULL",
            is_category=True,
        ),
        private="SELECT namespace, entity_id AS record_id FROM entities WHERE lower(category) = 'private'",
    ),
    Kind(
        TOOLSET,
        ("Goal", "Capability", "Limitation", "Sutra", "Protocol", "Persona"),
        ENTITY,
        Texts({SESSION_OPENED: _texts_of_session}),
    ),
    Kind(TOOLSET, ("Domain",), ENTITY, texts=None),
    Kind(
        TOOLSET,
        ("Insight", "Observation", "Belief", "Pattern", "Decision"),
        OBSERVATION,
        Texts({KNOWLEDGE_IMPORTED: texts_to_embed}),
        ended="SELECT namespace, pattern_id AS record_id FROM patterns WHERE status = 'deprecated'",
    ),
    Kind(TOOLSET, ("Session", "Experience", "OperationalState", "Tool", "Question", "Human"), place=None),
)
