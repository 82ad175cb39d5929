"""Declares Valence's kinds: beliefs, exchanges, insights, patterns and entities."""

from __future__ import annotations

from collections.abc import Sequence

from processors.memory.kind import ENTITY, OBSERVATION, Kind, Place, TagSource, Texts, TextsOf
from processors.memory.metadata import private_by, tags_of
from processors.valence.read.belief_consistency import open_tensions
from processors.valence.rules.beliefs import KIND as BELIEF
from processors.valence.rules.beliefs import TOOLSET, belief_id_of
from processors.valence.rules.identifiers import EXCHANGE, INSIGHT, PATTERN, object_id
from streams.event_types.valence import BELIEF_CREATED, BELIEF_SUPERSEDED
from streams.event_types.valence_kb import EXCHANGE_ADDED, INSIGHT_EXTRACTED, PATTERN_RECORDED
from streams.events import Event

_EXCHANGES = "FROM vkb_exchanges x JOIN vkb_sessions s ON s.namespace = x.namespace AND s.session_id = x.session_id"
_INSIGHTS = (
    "FROM vkb_session_insights i JOIN valence_beliefs b ON b.namespace = i.namespace AND b.belief_id = i.belief_id"
)


def _belief(field: str) -> TextsOf:
    def texts(event: Event) -> Sequence[tuple[str, str]]:
        content = event.data[field]
        return [(belief_id_of(event), content)] if content.strip() else []

    return texts


def _object(field: str, role: str) -> TextsOf:
    """A text whose record's id is made from the event in this role."""

    def texts(event: Event) -> Sequence[tuple[str, str]]:
        content = event.data[field]
        return [(object_id(event, role), content)] if content.strip() else []

    return texts


def _insight(event: Event) -> Sequence[tuple[str, str]]:
    """The texts of an insight: a belief, possibly an existing one, and a record of its session.

    The record keeps the insight's own words.
    """
    return [*_belief("content")(event), *_object("content", INSIGHT)(event)]


KINDS = (
    Kind(
        TOOLSET,
        (BELIEF,),
        OBSERVATION,
        Texts({BELIEF_CREATED: _belief("content"), BELIEF_SUPERSEDED: _belief("new_content")}),
        TagSource("SELECT namespace, belief_id AS record_id, unnest(domain_path) AS tag FROM valence_beliefs"),
        ended="SELECT namespace, belief_id AS record_id FROM valence_beliefs WHERE closed_at IS NOT NULL",
        successors="SELECT namespace, belief_id AS record_id, superseded_by_id AS successor_id FROM valence_beliefs",
        disputes=open_tensions,
        counted="valence_beliefs",
    ),
    Kind(
        TOOLSET,
        ("Insight",),
        OBSERVATION,
        Texts({INSIGHT_EXTRACTED: _insight}),
        TagSource(f"SELECT i.namespace, i.insight_id AS record_id, unnest(b.domain_path) AS tag {_INSIGHTS}"),
        ended=f"SELECT i.namespace, i.insight_id AS record_id {_INSIGHTS} WHERE b.closed_at IS NOT NULL",
    ),
    Kind(
        TOOLSET,
        ("Pattern",),
        OBSERVATION,
        Texts({PATTERN_RECORDED: _object("description", PATTERN)}),
        ended="SELECT namespace, pattern_id AS record_id FROM vkb_patterns_aged WHERE status = 'archived'",
    ),
    Kind(
        TOOLSET,
        ("Exchange",),
        Place("thoughts", roles="SELECT namespace, exchange_id AS record_id, role FROM vkb_exchanges"),
        Texts({EXCHANGE_ADDED: _object("content", EXCHANGE)}),
        TagSource(
            f"SELECT x.namespace, x.exchange_id AS record_id, {tags_of('s.metadata')} AS tag {_EXCHANGES} "
            "WHERE contains(s.metadata, '\"tags\"')"
        ),
        private=f"SELECT x.namespace, x.exchange_id AS record_id {_EXCHANGES} WHERE {private_by('s.metadata')}",
        is_source=True,
    ),
    Kind(
        TOOLSET,
        ("Entity",),
        ENTITY,
        ended="SELECT namespace, entity_id AS record_id FROM entity_resolutions WHERE entity_id <> canonical_id",
        successors="SELECT namespace, entity_id AS record_id, canonical_id AS successor_id FROM entity_resolutions",
    ),
)
