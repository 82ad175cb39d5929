"""What Context Graph declares about its memories: a kind for each modality."""

from __future__ import annotations

from collections.abc import Sequence

from processors.context_graph.rules.memories import TOOLSET, memory_id_of, text_of, words_of
from processors.memory.kind import TOOL_THOUGHT, Kind, Texts
from streams.event_types.context_ends import MEMORIES_MERGED
from streams.event_types.context_graph import MEMORY_INJECTED, MEMORY_STORED, MODALITIES
from streams.events import Event


def _text(event: Event) -> Sequence[tuple[str, str]]:
    text = text_of(event)
    return [] if text is None else [(memory_id_of(event), text)]


def _merged_texts(event: Event) -> Sequence[tuple[str, str]]:
    found = []
    for group in event.data["groups"]:
        about = group.get("modality"), group.get("rationale"), group.get("tags") or ()
        if (text := words_of(group["content"], *about)) is not None:
            found.append((group["memory_id"], text))
    return found


_TEXTS = Texts(
    # found by its words or, as a picture, by what was said of it; tags are words beside it and have no vector
    {MEMORY_STORED: _text, MEMORY_INJECTED: _text, MEMORIES_MERGED: _merged_texts},
    stored="SELECT namespace, memory_id AS record_id, coalesce(searched, content) AS text FROM context_memories",
    repeated=frozenset({MEMORIES_MERGED}),
)
KINDS = (
    Kind(
        TOOLSET,
        tuple(MODALITIES),
        TOOL_THOUGHT,
        _TEXTS,
        ended="SELECT namespace, memory_id AS record_id FROM context_ends",
        successors="SELECT namespace, memory_id AS record_id, merged_into AS successor_id FROM context_ends",
    ),
)
TEXT_EVENTS = frozenset(_TEXTS.of_event)
"""Types of the events by which memories come about that may have a vector."""
