"""The kinds of memory that all domains declare, and what the generic rooms ask of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from processors.frame.domains import modules_of
from processors.memory.kind import Kind, Place, TextsOf
from streams.events import Event

UNKNOWN = Place("thoughts")
"""A kind of a toolset that this version does not know: a thought of which nothing says whom it comes from."""


def collect(declared: Iterable[Kind]) -> dict[tuple[str, str], Kind]:
    """(toolset, kind) -> its declaration; (toolset, "") stands for all others of a toolset.

    Raises ValueError for a kind that is declared twice.
    """
    kinds: dict[tuple[str, str], Kind] = {}
    for kind in declared:
        for name in kind.names or ("",):
            if (kind.toolset, name) in kinds:
                raise ValueError(f"The kind {name!r} of {kind.toolset} is declared twice.")
            kinds[kind.toolset, name] = kind
    return kinds


def texts_by_event(declared: Iterable[Kind]) -> dict[str, TextsOf]:
    """Event type -> its texts. Raises ValueError for an event type that two kinds declare."""
    found: dict[str, TextsOf] = {}
    for kind in declared:
        for event_type, texts in (kind.texts.of_event if kind.texts else {}).items():
            if event_type in found:
                raise ValueError(f"The texts of {event_type} are declared by two kinds of memory.")
            found[event_type] = texts
    return found


def union(*selects: str | None) -> str:
    """The SELECTs as one; what is None declares nothing."""
    return " UNION ALL ".join(select for select in selects if select is not None)


DECLARED: Sequence[Kind] = tuple(kind for module in modules_of("kinds") for kind in module.KINDS)
KINDS: Mapping[tuple[str, str], Kind] = collect(DECLARED)
TEXTS: Mapping[str, TextsOf] = texts_by_event(DECLARED)
"""Event type -> the texts that become vectors."""
REPEATED = frozenset().union(*(kind.texts.repeated for kind in DECLARED if kind.texts))
"""Event types whose texts say again what earlier memories said."""
NOT_EMBEDDED = tuple((kind.toolset, name) for kind in DECLARED if kind.texts is None for name in kind.names)
"""(toolset, kind) of documents that get no vector."""
STORED_TEXTS = union(*(kind.texts.stored for kind in DECLARED if kind.texts))
"""(namespace, record_id, text) where the embedded text is not the document's own."""
ROLES = union(*(kind.place.roles for kind in DECLARED if kind.place))
"""(namespace, record_id, role) of the kinds whose origin is the role of their speaker."""
CATEGORIES = tuple(kind.tags.sql for kind in DECLARED if kind.tags and kind.tags.is_category)
"""Each (namespace, record_id, tag): what a search by tags asks besides the documents' own domain and tags."""
TAGS = union(
    "SELECT namespace, record_id, domain AS tag FROM documents WHERE domain IS NOT NULL",
    "SELECT namespace, record_id, tag FROM document_tags",
    *(kind.tags.sql for kind in DECLARED if kind.tags),
)
"""(namespace, record_id, tag) of every memory."""
PRIVATE = union(
    "SELECT namespace, record_id FROM documents WHERE lower(domain) = 'private'",
    "SELECT namespace, record_id FROM document_tags WHERE lower(tag) = 'private'",
    *(kind.private for kind in DECLARED),
)
"""(namespace, record_id) of memories of which a tag or their metadata says that they are private."""
ENDED = union(
    "SELECT namespace, record_id FROM merges",
    "SELECT namespace, record_id FROM prunes",
    *(kind.ended for kind in DECLARED),
)
"""(namespace, record_id) of memories that no longer hold: merged, pruned, superseded, archived, deprecated."""
SUCCESSORS = union(
    "SELECT namespace, record_id, into_id AS successor_id FROM merges",
    "SELECT namespace, record_id, successor_id FROM corrections",
    *(kind.successors for kind in DECLARED),
)
"""(namespace, record_id, successor_id) of memories in whose place another one holds; NULL where none does."""
DISPUTES = {(kind.toolset, name): kind.disputes for kind in DECLARED if kind.disputes for name in kind.names}
COUNTED = tuple(kind.counted for kind in DECLARED if kind.counted)
"""Tables whose rows are searched with a count of all matches."""

SOURCES = tuple((kind.toolset, name) for kind in DECLARED if kind.is_source for name in kind.names)
"""(toolset, kind) of memories that others are made of."""


def texts_to_embed(event: Event) -> Sequence[tuple[str, str]]:
    """(record id, text) of all that becomes vectors in an event of one of the types in TEXTS."""
    return TEXTS[event.type](event)


def place_of(toolset: str, kind: str) -> Place | None:
    """Where memories of this kind belong; None for those that are never retrieved."""
    declared = KINDS.get((toolset, kind)) or KINDS.get((toolset, ""))
    return UNKNOWN if declared is None else declared.place
