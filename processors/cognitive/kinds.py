"""Declares Cognitive Memory's kinds: raw dialogue, insights, episodes, items of working memory."""

from __future__ import annotations

from collections.abc import Sequence

from processors.cognitive.rules.identifiers import (
    EPISODE,
    L0,
    L2,
    TOOLSET,
    WORKING,
    event_number,
    item_number,
    record_id,
)
from processors.memory.kind import MODEL_THOUGHT, Kind, Place, TagSource, Texts, TextsOf
from processors.memory.metadata import private_by, tags_of
from streams.event_types.cognitive import EPISODE_STORED, L0_STORED, L2_STORED, WM_UPDATED
from streams.events import Event


def _row(kind: str, field: str) -> TextsOf:
    def texts(event: Event) -> Sequence[tuple[str, str]]:
        text = event.data[field]
        return [(record_id(kind, event_number(event)), text)] if text.strip() else []

    return texts


def _item(event: Event) -> Sequence[tuple[str, str]]:
    content = event.data["content"]
    return [(record_id(WORKING, item_number(event.namespace, content)), content)] if content.strip() else []


KINDS = (
    Kind(
        TOOLSET,
        (L0,),
        Place("thoughts", roles="SELECT namespace, 'l0-' || id AS record_id, speaker AS role FROM l0_raw"),
        Texts({L0_STORED: _row(L0, "content")}),
        TagSource(
            f"SELECT namespace, 'l0-' || id AS record_id, {tags_of('metadata')} AS tag FROM l0_raw "
            "WHERE contains(metadata, '\"tags\"')"
        ),
        private=f"SELECT namespace, 'l0-' || id AS record_id FROM l0_raw WHERE {private_by('metadata')}",
        is_source=True,
    ),
    Kind(TOOLSET, (L2,), MODEL_THOUGHT, Texts({L2_STORED: _row(L2, "content")})),
    Kind(
        TOOLSET,
        (EPISODE,),
        MODEL_THOUGHT,
        # an episode is found by its query's meaning alone; by keywords also by its reflection
        Texts(
            {EPISODE_STORED: _row(EPISODE, "query")},
            stored="SELECT namespace, 'episode-' || id AS record_id, query AS text FROM episode_memory",
        ),
    ),
    Kind(
        TOOLSET,
        (WORKING,),
        MODEL_THOUGHT,
        Texts({WM_UPDATED: _item}),
        ended="SELECT s.namespace, 'wm-' || s.item_id AS record_id FROM stale_memory s "
        "WHERE NOT EXISTS (FROM working_memory w WHERE w.namespace = s.namespace AND w.id = s.item_id)",
    ),
)
