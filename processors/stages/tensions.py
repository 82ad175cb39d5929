"""tensions: what a new belief contradicts, and names that turn out to be of one thing. It finds; resolving needs a call.

Needs the store: it waits until the belief and its vector are applied. Each pair is told of once; what is told is on
the log, so that a rebuild finds the same whatever the store held when it was looked at.

It also tells, for whoever follows the derived topic, what the reducers have decided: that a belief was reinforced, that
a tension is closed. No table is fed by these two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

import duckdb
import numpy as np

from processors.stages.stage import Stage
from processors.tension_candidates import Stated, find_tensions, nearest_held, read_stated
from processors.valence.beliefs import belief_id_of
from processors.valence.tensions import CANDIDATE_COSINE, CANDIDATES
from storage.applied import AppliedPositions
from storage.reader import Reader, find_outcome
from storage.search.engine import SearchIndexes
from streams.errors import Unavailable
from streams.event_types.valence import (
    BELIEF_CREATED,
    BELIEF_REINFORCED,
    BELIEF_SUPERSEDED,
    ENTITY_RESOLVED,
    TENSION_CLOSED,
    TENSION_DETECTED,
    TENSION_RESOLVED,
)
from streams.event_types.valence_kb import INSIGHT_EXTRACTED
from streams.events import Event, LoggedEvent
from streams.ids import derived_id, document_label
from streams.positions import Freshness
from streams.topics import MEMORY

WAIT_S = 10.0
REMEMBERED = 1000

_TWINS = """
SELECT e.entity_id, arg_min(c.entity_id, c."offset") AS canonical_id
FROM valence_belief_entities l
JOIN valence_entities e ON e.namespace = l.namespace AND e.entity_id = l.entity_id
JOIN valence_entities c ON c.namespace = e.namespace AND c.form = e.form AND c.type = e.type
WHERE l.namespace = $1 AND l.belief_id = $2
GROUP BY e.entity_id HAVING canonical_id <> e.entity_id ORDER BY e.entity_id"""

_CLOSED = """
SELECT tension_id, belief_a_id, belief_b_id, status, resolution, action, resolved_at FROM tensions
WHERE namespace = $1 AND (belief_a_id IN (SELECT unnest($2::VARCHAR[])) OR belief_b_id IN (SELECT unnest($2::VARCHAR[])))
  AND status IN ('resolved', 'accepted') AND resolved_at >= $3
ORDER BY tension_id"""
_CLOSED_FIELDS = ("tension_id", "belief_a_id", "belief_b_id", "status", "resolution", "action")
_CLOSING = frozenset({BELIEF_SUPERSEDED, TENSION_RESOLVED})


class Tensions(Stage):
    """A stated belief -> its conflicts with others, and the entities it names that are the same as earlier ones."""

    name = "tensions"
    source = MEMORY
    needs_store = True
    accepts = frozenset({BELIEF_CREATED, BELIEF_SUPERSEDED, INSIGHT_EXTRACTED, TENSION_RESOLVED})
    batch_size = 64
    gather_s = 1.0

    _applied: AppliedPositions

    def __init__(self, reader: Reader, indexes: SearchIndexes, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied
        self._found: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """The pairs that were found last: their facts may not be applied yet when one of them is closed."""

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        token = Freshness.after(logged.position for logged in events)
        stages = ("embed",) if self._indexes.model is not None else ()
        if not await self._applied.wait(token, timeout_s=WAIT_S, stages=stages):
            raise Unavailable("The store has not caught up with the log; beliefs are compared once it has.")
        return await self._reader.run(lambda cursor: self.find(cursor, events))

    def find(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The facts about each event, from what the store holds now."""
        stated = self._stated(cursor, [logged for logged in events if logged.event.type != TENSION_RESOLVED])
        closed = [self._closed(cursor, logged) if logged.event.type in _CLOSING else [] for logged in events]
        return [[*stated.get(logged.key, ()), *facts] for logged, facts in zip(events, closed, strict=True)]

    def _stated(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> dict[str, list[Event]]:
        """What each stated belief is in conflict with and which of its entities are one; or that it has reinforced another."""
        facts: dict[str, list[Event]] = {}
        for namespace in dict.fromkeys(logged.event.namespace for logged in events):
            own = {belief_id_of(logged.event): logged for logged in events if logged.event.namespace == namespace}
            known = read_stated(cursor, namespace, own)
            vectors, near = self._near(cursor, namespace, list(known))
            for belief_id, logged in own.items():
                if (stated := known.get(belief_id)) is None:
                    facts[logged.key] = self._reinforced(cursor, logged)
                    continue
                found = self._conflicts(cursor, logged, belief_id, stated, vectors.get(belief_id), near.get(belief_id, {}))
                facts[logged.key] = [*(self._twins(cursor, logged, belief_id) if stated.linked else ()), *found]
        return facts

    def _near(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]
    ) -> tuple[dict[str, np.ndarray], dict[str, dict[str, float]]]:
        """The vectors of these beliefs, and what is near to each: all are looked for at once, which reads the index once."""
        if self._indexes.model is None or not ids:
            return {}, {}
        space = self._indexes.model.space
        labels = {document_label(namespace, belief_id): belief_id for belief_id in ids}
        held = self._indexes.vectors(np.array(list(labels), np.int64), space=space)
        vectors = {labels[label]: vector for label, vector in held.items()}
        if not vectors:
            return {}, {}
        near = nearest_held(cursor, self._indexes, namespace, np.stack(list(vectors.values())), CANDIDATE_COSINE, CANDIDATES, space=space)
        return vectors, dict(zip(vectors, near, strict=True))

    def _twins(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent, belief_id: str) -> list[Event]:
        """The entities that it names which are the same as earlier ones."""
        twins = cursor.execute(_TWINS, [logged.event.namespace, belief_id]).fetchall()
        return [
            self._named(logged, ENTITY_RESOLVED, entity_id, {"entity_id": entity_id, "canonical_id": canonical_id, "how": "same_form"})
            for entity_id, canonical_id in twins
        ]

    def _conflicts(
        self,
        cursor: duckdb.DuckDBPyConnection,
        logged: LoggedEvent,
        belief_id: str,
        stated: Stated,
        vector: np.ndarray | None,
        near: Mapping[str, float],
    ) -> list[Event]:
        model = self._indexes.model
        space = model.space if model is not None else None
        made_by = {"model_id": model.model_id} if model is not None and vector is not None else {}
        facts = []
        for finding in find_tensions(cursor, self._indexes, logged.event.namespace, belief_id, stated, vector, near, space=space):
            data = asdict(finding) | {"tension_id": finding.tension_id, **made_by}
            facts.append(self._named(logged, TENSION_DETECTED, finding.tension_id, data))
            self._found[finding.tension_id] = (finding.belief_a_id, finding.belief_b_id)
        while len(self._found) > REMEMBERED:
            self._found.popitem(last=False)
        return facts

    def _reinforced(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> list[Event]:
        event = logged.event
        decided = find_outcome(cursor, event.namespace, event.data.get("request_id") or event.id)
        if decided is None or decided.position != logged.position or decided.result.get("action") != "reinforced":
            return []
        told = {name: decided.result[name] for name in ("belief_id", "corroboration_count")}
        return [self.fact(logged, BELIEF_REINFORCED, told | {"stated_in": event.id})]

    def _closed(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> list[Event]:
        """The tensions that this event has closed. Which one tells of a tension makes no difference to what is told."""
        event = logged.event
        ids = [event.data[name] for name in ("old_belief_id", "belief_a_id", "belief_b_id") if name in event.data]
        rows = cursor.execute(_CLOSED, [event.namespace, ids, event.time.replace(tzinfo=None)]).fetchall()
        closed = [(*row[:-1], row[-1].replace(tzinfo=UTC)) for row in rows]
        if event.type == BELIEF_SUPERSEDED and self._has_superseded(cursor, logged):
            known, old, resolution = {row[0] for row in rows}, ids[0], f"auto: superseded by {belief_id_of(event)}"
            pairs = ((tension, pair) for tension, pair in self._found.items() if old in pair and tension not in known)
            closed += [(tension, *pair, "resolved", resolution, None, event.time) for tension, pair in pairs]
        return [self._told(event, dict(zip(_CLOSED_FIELDS, values, strict=True)), moment) for *values, moment in closed]

    def _has_superseded(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> bool:
        event = logged.event
        label = document_label(event.namespace, event.data["old_belief_id"])
        rows = cursor.execute(
            "SELECT superseded_by_id FROM valence_beliefs WHERE namespace = ? AND label = ?", [event.namespace, label]
        ).fetchall()
        return rows == [(belief_id_of(event),)]

    def _told(self, event: Event, data: dict[str, object], moment: datetime) -> Event:
        identity = derived_id(TENSION_CLOSED, event.namespace, str(data["tension_id"]))
        return Event(identity, f"thalweg:stage/{self.name}", TENSION_CLOSED, event.namespace, moment, data)

    def _named(self, logged: LoggedEvent, event_type: str, what: str, data: dict[str, object]) -> Event:
        """A fact of several that one event may have: what it is about is in its id."""
        fact = self.fact(logged, event_type, data)
        return Event(derived_id(fact.id, what), fact.source, fact.type, fact.namespace, fact.time, fact.data)
