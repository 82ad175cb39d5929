"""Which texts of an event become vectors: (record id, text), by the event's type, for every toolset that remembers text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from processors.cognitive import embedding as cognitive
from processors.talos import extraction
from streams.events import Event, wire_type

Texts = Sequence[tuple[str, str]]

TEXTS: Mapping[str, Callable[[Event], Texts]] = {
    wire_type("talos.journal.written"): extraction.texts_to_embed,
    wire_type("talos.friction.logged"): extraction.texts_to_embed,
    **cognitive.TEXTS,
}


def texts_to_embed(event: Event) -> Texts:
    """The texts of this event, with the ids of the records that they are."""
    return TEXTS[event.type](event)
