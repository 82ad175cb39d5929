"""tensions: what a new belief contradicts, and names that turn out to be of one thing. It finds; resolving needs a call.

Needs the store: it waits until the belief and its vector are applied. Each pair is told of once; what is told is on
the log, so that a rebuild finds the same whatever the store held when it was looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import duckdb
import numpy as np

from processors.stages.stage import Stage
from processors.tension_candidates import find_tensions
from processors.valence.beliefs import belief_id_of
from storage.applied import AppliedPositions
from storage.reader import Reader
from storage.search.engine import SearchIndexes
from streams.errors import Unavailable
from streams.event_types.valence import BELIEF_CREATED, BELIEF_SUPERSEDED, ENTITY_RESOLVED, TENSION_DETECTED
from streams.event_types.valence_kb import INSIGHT_EXTRACTED
from streams.events import Event, LoggedEvent
from streams.ids import derived_id, document_label
from streams.positions import Freshness
from streams.topics import MEMORY

WAIT_S = 10.0

_TWINS = """
SELECT e.entity_id, arg_min(c.entity_id, c."offset") AS canonical_id
FROM valence_belief_entities l
JOIN valence_entities e ON e.namespace = l.namespace AND e.entity_id = l.entity_id
JOIN valence_entities c ON c.namespace = e.namespace AND c.form = e.form AND c.type = e.type
WHERE l.namespace = $1 AND l.belief_id = $2
GROUP BY e.entity_id HAVING canonical_id <> e.entity_id ORDER BY e.entity_id"""


class Tensions(Stage):
    """A stated belief -> its conflicts with others, and the entities it names that are the same as earlier ones."""

    name = "tensions"
    source = MEMORY
    accepts = frozenset({BELIEF_CREATED, BELIEF_SUPERSEDED, INSIGHT_EXTRACTED})
    batch_size = 32

    def __init__(self, reader: Reader, indexes: SearchIndexes, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        token = Freshness.after(logged.position for logged in events)
        stages = ("embed",) if self._indexes.model is not None else ()
        if not await self._applied.wait(token, timeout_s=WAIT_S, stages=stages):
            raise Unavailable("The store has not caught up with the log; beliefs are compared once it has.")
        return [await self._reader.run(lambda cursor, logged=logged: self.find(cursor, logged)) for logged in events]  # type: ignore[misc]

    def find(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> list[Event]:
        """The facts about one event, from what the store holds now."""
        event = logged.event
        belief_id = belief_id_of(event)
        twins = cursor.execute(_TWINS, [event.namespace, belief_id]).fetchall()
        facts = [
            self._named(logged, ENTITY_RESOLVED, entity_id, {"entity_id": entity_id, "canonical_id": canonical_id, "how": "same_form"})
            for entity_id, canonical_id in twins
        ]
        model = self._indexes.model
        vector = self._vector(cursor, event.namespace, belief_id)
        made_by = {"model_id": model.model_id} if model is not None and vector is not None else {}
        for finding in find_tensions(cursor, self._indexes, event.namespace, belief_id, vector):
            data = asdict(finding) | {"tension_id": finding.tension_id, **made_by}
            facts.append(self._named(logged, TENSION_DETECTED, finding.tension_id, data))
        return facts

    def _vector(self, cursor: duckdb.DuckDBPyConnection, namespace: str, belief_id: str) -> np.ndarray | None:
        model = self._indexes.model
        if model is None:
            return None
        label = document_label(namespace, belief_id)
        row = cursor.execute("SELECT vector FROM embeddings WHERE label = ? AND space = ?", [label, model.space]).fetchone()
        return None if row is None else np.asarray(row[0], np.float32)

    def _named(self, logged: LoggedEvent, event_type: str, what: str, data: dict[str, object]) -> Event:
        """A fact of several that one event may have: what it is about is in its id."""
        fact = self.fact(logged, event_type, data)
        return Event(derived_id(fact.id, what), fact.source, fact.type, fact.namespace, fact.time, fact.data)
