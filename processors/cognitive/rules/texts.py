"""Which texts of Cognitive Memory become vectors: an insight, an item of working memory, of an episode its query alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from processors.cognitive.rules.identifiers import EPISODE, L0, L2, WORKING, event_number, item_number, record_id
from streams.event_types.cognitive import EPISODE_STORED, L0_STORED, L2_STORED, WM_UPDATED
from streams.events import Event

Texts = Sequence[tuple[str, str]]


def _made(kind: str, field: str) -> Callable[[Event], Texts]:
    def texts(event: Event) -> Texts:
        text = event.data[field]
        return [(record_id(kind, event_number(event)), text)] if text.strip() else []

    return texts


def _item(event: Event) -> Texts:
    content = event.data["content"]
    return [(record_id(WORKING, item_number(event.namespace, content)), content)] if content.strip() else []


TEXTS: Mapping[str, Callable[[Event], Texts]] = {
    L0_STORED: _made(L0, "content"),
    L2_STORED: _made(L2, "content"),
    EPISODE_STORED: _made(EPISODE, "query"),
    WM_UPDATED: _item,
}
