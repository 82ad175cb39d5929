"""A kind of memory, as its domain declares it in `processors/<domain>/kinds.py`.

It is all that the generic rooms know of the domain's memories. Each SQL fragment is a SELECT without parameters over
the domain's own tables, of every namespace; its reader restricts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from streams.events import Event

if TYPE_CHECKING:
    import duckdb

TableName = Literal["thoughts", "kg_entities", "kg_observations"]
Origin = Literal["human", "tool", "model", "logged"]
Name = tuple[str, str]
"""(kind, record id) of a memory."""
DisputesOf = Callable[["duckdb.DuckDBPyConnection", str, Collection[str]], Mapping[str, Mapping[Name, str]]]
"""Of a cursor, a namespace and record ids: by record the memories that it is in an open tension with -> its id."""
TextsOf = Callable[[Event], Sequence[tuple[str, str]]]
"""The texts of an event that become vectors: (record id, text)."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a retrieval counts a kind, and whom its memories come from.

    `origin` None: each memory's role says it; `roles` SELECTs (namespace, record_id, role).
    """

    table: TableName
    origin: Origin | None = None
    roles: str | None = None


LOGGED_THOUGHT, MODEL_THOUGHT, TOOL_THOUGHT = (
    Place("thoughts", "logged"),
    Place("thoughts", "model"),
    Place("thoughts", "tool"),
)
ENTITY, OBSERVATION = Place("kg_entities", "tool"), Place("kg_observations", "tool")


@dataclass(frozen=True, slots=True)
class Texts:
    """What of a kind becomes vectors.

    `of_event` by event type; an event that makes memories of several kinds is declared by one of them. `stored` SELECTs
    (namespace, record_id, text) where the embedded text is not the document's own. `repeated`: those of the event types
    whose texts say again what earlier memories said, so that nothing changes by them.
    """

    of_event: Mapping[str, TextsOf] = field(default_factory=dict)
    stored: str | None = None
    repeated: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TagSource:
    """A SELECT of (namespace, record_id, tag).

    `is_category`: cheap enough for each search that filters by tags; the others are read by retrievals alone.
    """

    sql: str
    is_category: bool = False


@dataclass(frozen=True, slots=True)
class Kind:
    """Kinds of documents of one toolset that are treated alike.

    `names`: values of `documents.kind`; none: every kind of the toolset. `place` None: never retrieved as a snippet.
    `texts` None: never embedded. `private` and `ended` SELECT (namespace, record_id) of what is private, and of what no
    longer holds; `successors` SELECTs (namespace, record_id, successor_id) of what another memory took the place of.
    `disputes` reads open tensions. `counted`: a table whose rows are searched with a count of all matches. `is_source`:
    other memories are made of its texts and stand for it where they say the same.
    """

    toolset: str
    names: tuple[str, ...]
    place: Place | None
    texts: Texts | None = Texts()
    tags: TagSource | None = None
    private: str | None = None
    ended: str | None = None
    successors: str | None = None
    disputes: DisputesOf | None = None
    counted: str | None = None
    is_source: bool = False
