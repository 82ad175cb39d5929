"""causes: what a new memory is caused by or causes, by what it or an earlier one states, as edges.

It needs the store: it waits until the memory and its vector are applied, and compares it with those before it on the
log; those that come later are compared with it. It needs token vectors: without them it finds nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from processors.context_graph.kinds import TEXT_EVENTS
from processors.context_graph.read.causes import CauseFinder
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.cause_links import CausalLink
from processors.frame.stage import Stage, StageParts
from processors.memory.registry import texts_to_embed
from processors.memory.stages.embed import Embed
from processors.memory.vector_facts import VECTOR_STAGE
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.index_set import IndexSet
from streams.event_types.context_edges import EDGES_FOUND
from streams.events import Event, LoggedEvent
from streams.positions import Freshness
from streams.topics import MEMORY

DIGITS = 4


class Causes(Stage):
    """A memory -> its edges from causes and to effects, and what it denies of earlier ones."""

    name = "causes"
    source = MEMORY
    waits_for = frozenset({VECTOR_STAGE})
    needs_store = True
    accepts = TEXT_EVENTS
    batch_size = 64
    linger_s = 2.0  # nobody waits for edges

    _applied: AppliedPositions

    def __init__(self, reader: Reader, indexes: IndexSet, applied: AppliedPositions, embed: Embed) -> None:
        """`embed`: its model says where the tokens of a text stand."""
        self._reader, self._indexes, self._applied, self._embed = reader, indexes, applied, embed
        self._cache = FingerprintCache(0)

    @classmethod
    def made(cls, parts: StageParts) -> Causes:
        store = parts.needed_store
        return cls(store.reader, store.indexes, store.applied, parts.stage(Embed))

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        if self._indexes.model is None:
            return [[] for _ in events]
        await self.store_has(Freshness.after(logged.position for logged in events), [VECTOR_STAGE])
        return await self._reader.run(lambda cursor: self.find(cursor, events))

    def find(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The facts about each event, from what the store holds now."""
        ids = [[identity for identity, _ in texts_to_embed(logged.event)] for logged in events]
        finders: dict[str, CauseFinder] = {}
        for namespace in {logged.event.namespace for logged in events}:
            reader = FingerprintReader(cursor, self._indexes, self._embed.embedder, self._cache, namespace)
            finders[namespace] = CauseFinder(reader, self._indexes.yield_to_callers)
            own = (each for logged, each in zip(events, ids, strict=True) if logged.event.namespace == namespace)
            finders[namespace].read_ahead(one for each in own for one in each)
        found: list[Sequence[Event]] = []
        for logged, each in zip(events, ids, strict=True):
            links = [link for one in each for link in finders[logged.event.namespace].links(one)]
            edges = [_edge(link, self._space) for link in links]
            found.append([self.fact(logged, EDGES_FOUND, {"edges": edges})] if edges else [])
            self._indexes.yield_to_callers()
        return found

    @property
    def _space(self) -> str | None:
        model = self._indexes.model
        return None if model is None else model.space


def _edge(link: CausalLink, space: str | None) -> dict[str, object]:
    return {
        "source_id": link.cause_id,
        "target_id": link.effect_id,
        "kind": "causal",
        "weight": round(link.similarity, DIGITS),
        "confidence": link.confidence,
        "evidence": dict(link.evidence),
        "space": space,
    }
