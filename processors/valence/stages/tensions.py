"""tensions: what a new belief contradicts, and names that turn out to be of one thing.

The stage finds; resolving needs a call. It needs the store: it waits until the belief and its vector are applied. Each
pair is published once, so that a rebuild finds the same whatever the store held then.

It also publishes, for readers of the derived topic, what the reducers have decided: that a belief was reinforced, that
a tension is closed. No table is fed by these two.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import duckdb
import numpy as np

from processors.frame.stage import Stage, StageParts
from processors.valence.read.tension_candidates import (
    ActiveBeliefs,
    NewBelief,
    Proximity,
    find_tensions,
    nearest_records,
    read_new_beliefs,
)
from processors.valence.rules.beliefs import belief_id_of
from storage.applied import AppliedPositions
from storage.reader import Reader, find_outcome
from storage.search.index_set import IndexSet
from storage.search.vectors.space import Space
from streams.event_types.valence import (
    BELIEF_CREATED,
    BELIEF_REINFORCED,
    BELIEF_RETRACTED,
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

MAX_RECENT_PAIRS = 1000
BELIEFS_PER_TURN = 4
"""How many beliefs are compared before others get the interpreter; several take little longer than one."""

_TWINS = """
SELECT l.belief_id, e.entity_id, arg_min(c.entity_id, c."offset") AS canonical_id
FROM valence_belief_entities l
JOIN valence_entities e ON e.namespace = l.namespace AND e.entity_id = l.entity_id
JOIN valence_entities c ON c.namespace = e.namespace AND c.form = e.form AND c.type = e.type
WHERE l.namespace = $1 AND l.label IN (SELECT unnest($2::BIGINT[]))
GROUP BY l.belief_id, e.entity_id HAVING canonical_id <> e.entity_id ORDER BY l.belief_id, e.entity_id"""

_CLOSED = """
SELECT tension_id, belief_a_id, belief_b_id, status, resolution, action, resolved_at FROM tensions
WHERE namespace = $1
  AND (belief_a_id IN (SELECT unnest($2::VARCHAR[])) OR belief_b_id IN (SELECT unnest($2::VARCHAR[])))
  AND status IN ('resolved', 'accepted') AND resolved_at >= $3
ORDER BY tension_id"""
_CLOSED_FIELDS = ("tension_id", "belief_a_id", "belief_b_id", "status", "resolution", "action")
_BELIEFS = ("old_belief_id", "belief_id", "belief_a_id", "belief_b_id")
"""Fields of these events that name a belief which may have ended."""
_ENDING = frozenset({BELIEF_RETRACTED, TENSION_RESOLVED})
"""Events that state nothing."""
_CLOSING = _ENDING | {BELIEF_SUPERSEDED}


class Tensions(Stage):
    """A stated belief -> its conflicts with others, and its entities that earlier ones name too."""

    name = "tensions"
    source = MEMORY
    waits_for = frozenset({"embed"})
    needs_store = True
    accepts = frozenset({BELIEF_CREATED, INSIGHT_EXTRACTED}) | _CLOSING
    batch_size = 64
    linger_s = 1.0

    _applied: AppliedPositions

    def __init__(self, reader: Reader, indexes: IndexSet, applied: AppliedPositions) -> None:
        self._reader, self._indexes, self._applied = reader, indexes, applied
        self._found: OrderedDict[str, tuple[str, str]] = OrderedDict()
        """The pairs that were found last: their facts may not be applied yet when one of them is closed."""

    @classmethod
    def made(cls, parts: StageParts) -> Tensions:
        store = parts.needed_store
        return cls(store.reader, store.indexes, store.applied)

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        token = Freshness.after(logged.position for logged in events)
        stages = ("embed",) if self._indexes.model is not None else ()
        await self.store_has(token, stages, patient=False)  # a call that states a belief names its tensions
        return await self._reader.run(lambda cursor: self.find(cursor, events))

    def find(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        """The facts about each event, from what the store holds now."""
        stated = self._stated(cursor, [logged for logged in events if logged.event.type not in _ENDING])
        closed = [self._closed(cursor, logged) if logged.event.type in _CLOSING else [] for logged in events]
        return [[*stated.get(logged.key, ()), *facts] for logged, facts in zip(events, closed, strict=True)]

    def _stated(self, cursor: duckdb.DuckDBPyConnection, events: Sequence[LoggedEvent]) -> dict[str, list[Event]]:
        """The facts about each stated belief: conflicts and merged entities, or a reinforcement."""
        facts: dict[str, list[Event]] = {}
        for namespace in dict.fromkeys(logged.event.namespace for logged in events):
            own = {belief_id_of(logged.event): logged for logged in events if logged.event.namespace == namespace}
            known = read_new_beliefs(cursor, namespace, own)
            twins = self._twins(
                cursor, namespace, [belief_id for belief_id, stated in known.items() if stated.entities]
            )
            conflicts = self._conflicts(cursor, namespace, known)
            for belief_id, logged in own.items():
                if belief_id not in known:
                    facts[logged.key] = self._reinforced(cursor, logged)
                    continue
                named = (
                    self.fact(logged, ENTITY_RESOLVED, data, about=(data["entity_id"],))
                    for data in twins.get(belief_id, ())
                )
                found = (
                    self.fact(logged, TENSION_DETECTED, data, about=(data["tension_id"],))
                    for data in conflicts[belief_id]
                )
                facts[logged.key] = [*named, *found]
        return facts

    def _twins(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, ids: Sequence[str]
    ) -> dict[str, list[dict[str, Any]]]:
        """By belief the entities that it names which are the same as earlier ones."""
        found: dict[str, list[dict[str, Any]]] = {}
        if ids:
            labels = [document_label(namespace, belief_id) for belief_id in ids]
            for belief_id, entity_id, canonical_id in cursor.execute(_TWINS, [namespace, labels]).fetchall():
                data = {"entity_id": entity_id, "canonical_id": canonical_id, "how": "same_form"}
                found.setdefault(belief_id, []).append(data)
        return found

    def _conflicts(
        self, cursor: duckdb.DuckDBPyConnection, namespace: str, stated: Mapping[str, NewBelief]
    ) -> dict[str, list[dict[str, Any]]]:
        model = self._indexes.model
        space = self._indexes.space(model.space if model is not None else None)
        placed = self._placed(namespace, list(stated), space)
        conflicts: dict[str, list[dict[str, Any]]] = {}
        ids = list(stated)
        for start in range(0, len(ids), BELIEFS_PER_TURN):
            some = {belief_id: stated[belief_id] for belief_id in ids[start : start + BELIEFS_PER_TURN]}
            active = ActiveBeliefs(cursor, namespace)
            for belief_id, found in find_tensions(active, space, some, placed).items():
                made_by = {"model_id": model.model_id} if model is not None and belief_id in placed else {}
                conflicts[belief_id] = [
                    asdict(finding) | {"tension_id": finding.tension_id, **made_by} for finding, _ in found
                ]
                self._found |= {finding.tension_id: (finding.belief_a_id, finding.belief_b_id) for finding, _ in found}
            self._indexes.yield_to_callers()
        while len(self._found) > MAX_RECENT_PAIRS:
            self._found.popitem(last=False)
        return conflicts

    def _placed(self, namespace: str, ids: Sequence[str], space: Space) -> dict[str, Proximity]:
        """Those of these beliefs that have a vector, with what is near to each. The index is read once for all."""
        if not ids:
            return {}
        labels = {document_label(namespace, belief_id): belief_id for belief_id in ids}
        held = space.vectors(np.array(list(labels), np.int64))
        if not held:
            return {}
        near = nearest_records(space, np.stack(list(held.values())))
        return {
            labels[label]: Proximity(vector, others) for (label, vector), others in zip(held.items(), near, strict=True)
        }

    def _reinforced(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> list[Event]:
        event = logged.event
        decided = find_outcome(cursor, event.namespace, event.data.get("request_id") or event.id)
        if decided is None or decided.position != logged.position or decided.result.get("action") != "reinforced":
            return []
        reinforced = {name: decided.result[name] for name in ("belief_id", "corroboration_count")}
        return [self.fact(logged, BELIEF_REINFORCED, reinforced | {"stated_in": event.id})]

    def _closed(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> list[Event]:
        """The tensions that this event has closed. Whichever event of several is first, the fact is the same."""
        event = logged.event
        ids = [event.data[name] for name in _BELIEFS if name in event.data]
        rows = cursor.execute(_CLOSED, [event.namespace, ids, event.time.replace(tzinfo=None)]).fetchall()
        closed = [(*row[:-1], row[-1].replace(tzinfo=UTC)) for row in rows]
        if event.type == BELIEF_SUPERSEDED and self._has_superseded(cursor, logged):
            known, old, resolution = {row[0] for row in rows}, ids[0], f"auto: superseded by {belief_id_of(event)}"
            pairs = ((tension, pair) for tension, pair in self._found.items() if old in pair and tension not in known)
            closed += [(tension, *pair, "resolved", resolution, None, event.time) for tension, pair in pairs]
        return [
            self._closed_fact(event, dict(zip(_CLOSED_FIELDS, values, strict=True)), moment)
            for *values, moment in closed
        ]

    def _has_superseded(self, cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> bool:
        event = logged.event
        label = document_label(event.namespace, event.data["old_belief_id"])
        rows = cursor.execute(
            "SELECT superseded_by_id FROM valence_beliefs WHERE namespace = ? AND label = ?", [event.namespace, label]
        ).fetchall()
        return rows == [(belief_id_of(event),)]

    def _closed_fact(self, event: Event, data: dict[str, object], moment: datetime) -> Event:
        identity = derived_id(TENSION_CLOSED, event.namespace, str(data["tension_id"]))
        return Event(identity, f"thalweg:stage/{self.name}", TENSION_CLOSED, event.namespace, moment, data)
