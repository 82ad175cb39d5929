"""What Context Graph declares about its memories: a kind for each modality."""

from __future__ import annotations

from collections.abc import Sequence

from processors.context_graph.rules.memories import TOOLSET, memory_id_of, text_of
from processors.memory.kind import TOOL_THOUGHT, Kind, Texts
from streams.event_types.context_graph import MEMORY_INJECTED, MEMORY_STORED, MODALITIES
from streams.events import Event


def _text(event: Event) -> Sequence[tuple[str, str]]:
    text = text_of(event)
    return [] if text is None else [(memory_id_of(event), text)]


KINDS = (
    Kind(
        TOOLSET,
        tuple(MODALITIES),
        TOOL_THOUGHT,
        # found by its words or, as a picture, by what was said of it; tags are words beside it and have no vector
        Texts(
            {MEMORY_STORED: _text, MEMORY_INJECTED: _text},
            stored="SELECT namespace, memory_id AS record_id, coalesce(searched, content) AS text "
            "FROM context_memories",
        ),
    ),
)
