"""Which texts of an event become vectors: (record id, text), by the event's type, for every toolset that remembers text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from processors.cognitive.rules import texts as cognitive
from processors.talos.rules import extraction
from processors.talos.rules.identifiers import goal_id, named_id, session_names
from processors.valence.rules.beliefs import belief_id_of
from processors.valence.rules.identifiers import EXCHANGE, INSIGHT, PATTERN, object_id
from streams.event_types.valence import BELIEF_CREATED, BELIEF_SUPERSEDED
from streams.event_types.valence_kb import EXCHANGE_ADDED, INSIGHT_EXTRACTED, PATTERN_RECORDED
from streams.events import Event, wire_type

Texts = Sequence[tuple[str, str]]


def _belief(field: str) -> Callable[[Event], Texts]:
    def texts(event: Event) -> Texts:
        content = event.data[field]
        return [(belief_id_of(event), content)] if content.strip() else []

    return texts


def _said(field: str, role: str) -> Callable[[Event], Texts]:
    """A text whose record's id is made from the event in this role."""

    def texts(event: Event) -> Texts:
        content = event.data[field]
        return [(object_id(event, role), content)] if content.strip() else []

    return texts


def _concluded(event: Event) -> Texts:
    """An insight is a belief, which may be held already, and said in a session, where its own words can be found."""
    content = event.data["content"]
    return [(belief_id_of(event), content), (object_id(event, INSIGHT), content)] if content.strip() else []


def _opened(event: Event) -> Texts:
    """The goal of a session, and the names of its persona, protocol and human."""
    goal = event.data["goal"].strip()
    return (
        [(goal_id(goal), goal), *((named_id(label.lower(), name), name) for label, name in session_names(event))]
        if goal
        else []
    )


TEXTS: Mapping[str, Callable[[Event], Texts]] = {
    **dict.fromkeys(extraction.EXTRACTED_FROM, extraction.texts_to_embed),
    wire_type("talos.session.opened"): _opened,
    **cognitive.TEXTS,
    BELIEF_CREATED: _belief("content"),
    BELIEF_SUPERSEDED: _belief("new_content"),
    INSIGHT_EXTRACTED: _concluded,
    EXCHANGE_ADDED: _said("content", EXCHANGE),
    PATTERN_RECORDED: _said("description", PATTERN),
}


def texts_to_embed(event: Event) -> Texts:
    """The texts of this event, with the ids of the records that they are."""
    return TEXTS[event.type](event)
