"""observe_drift: how far each namespace has drifted from its goal, an hour at a time.

An hour is observed once ten memories are new since the last observation. What it says is a function of the memories
that were stored before its end. A severe drift is corrected by itself; a correction is lifted once nothing drifts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime

import duckdb

from processors.context_graph.read.corrections import ProbeQueries, in_force, plan, told
from processors.context_graph.read.drift import DriftCache, DriftReader, Observation
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import Purposes, read_north_star
from processors.context_graph.read.memory_texts import FingerprintCache
from processors.context_graph.rules.corrections import NONE
from processors.context_graph.rules.drift_series import TIMEFRAMES
from processors.context_graph.rules.memories import TOOLSET
from processors.frame.stage import StoreParts
from processors.frame.timer import Timer, TimerParts, due_event
from processors.memory.stages.embed import Embed
from storage.statements import execute
from streams.clock import format_time
from streams.event_types.context_drift import DRIFT_CORRECTED, DRIFT_OBSERVED
from streams.events import Event

NAME = "observe_drift"
ENOUGH = 10
"""New memories since the last observation."""
CACHED = 512
"""Memories whose fingerprints are kept from one hour to the next."""


@dataclass(frozen=True)
class DriftTimer:
    """Looks for hours that are due, in a process with a store."""

    store: StoreParts
    embed: Embed
    fingerprints: FingerprintCache = field(default_factory=lambda: FingerprintCache(CACHED))
    purposes: Purposes = field(default_factory=Purposes)
    cache: DriftCache = field(default_factory=DriftCache)
    queries: ProbeQueries = field(default_factory=ProbeQueries)

    def due(self, cursor: duckdb.DuckDBPyConnection, now: datetime) -> Iterator[Event]:
        """The observations of the hour that ended last, with what follows from each, before it."""
        hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        for namespace in _waiting(cursor, hour):
            goal = read_north_star(cursor, namespace)
            if goal is None:
                continue
            reader = FingerprintReader(cursor, self.store.indexes, self.embed.embedder, self.fingerprints, namespace)
            drift = DriftReader(reader, self.purposes, self.cache, goal, until=hour)
            found = _observe(drift, hour)
            if found is not None:
                yield from self._corrections(drift, found)
                yield due_event(NAME, DRIFT_OBSERVED, namespace, _said(found), about=(_name(found),), due_at=hour)

    def _corrections(self, drift: DriftReader, found: Observation) -> Iterator[Event]:
        """Of a severe drift the correction, unless it is in force; and the end of one that is needed no more."""
        namespace, data = drift.reader.namespace, None
        strategy, because = in_force(drift.reader.cursor, namespace)
        if found.severity == "severe" and strategy != "emergency_intervention":
            data = plan(drift, found, self.queries.encoded(self.embed.embedder)).findings
        elif found.severity == "none" and strategy is not None and because not in (None, "none"):
            ended = {"goal_id": found.goal.goal_id, "severity": "none", "trend": found.course.trend}
            data = ended | {name: value for name, value in told(NONE).items() if value is not None}
        if data is not None:
            said = data | {"automatic": True}
            yield due_event(NAME, DRIFT_CORRECTED, namespace, said, about=("correct", _name(found)), due_at=found.at)


def _waiting(cursor: duckdb.DuckDBPyConnection, hour: datetime) -> list[str]:
    """Namespaces with a goal, of which enough is new and this hour is not observed. What lies ahead of it is none."""
    until = hour.replace(tzinfo=None)
    rows = execute(
        cursor,
        "WITH seen AS (SELECT namespace, max(observed_at) AS observed_at, max_by(memories, observed_at) AS memories "
        "FROM context_drift_observations WHERE observed_at <= ? GROUP BY namespace) "
        "SELECT g.namespace FROM context_goals g LEFT JOIN seen s ON s.namespace = g.namespace "
        "JOIN documents d ON d.namespace = g.namespace AND d.toolset = ? AND d.created_at < ? "
        "JOIN context_memories m ON m.namespace = d.namespace AND m.memory_id = d.record_id AND m.merged_from IS NULL "
        "WHERE g.level = 'NorthStar' AND (s.observed_at IS NULL OR s.observed_at < ?) "
        "GROUP BY g.namespace HAVING count(*) >= coalesce(any_value(s.memories), 0) + ? ORDER BY g.namespace",
        [until, TOOLSET, until, until, ENOUGH],
    ).fetchall()
    return [namespace for (namespace,) in rows]


def _observe(drift: DriftReader, hour: datetime) -> Observation | None:
    """The state by the shortest timeframe from a day on in which enough was stored; None where none has."""
    for name in ("24h", "7d", "30d"):
        found = drift.observe(TIMEFRAMES[name], hour)
        if found is not None and found.is_sufficient:
            return found
    return None


def _name(found: Observation) -> str:
    return format_time(found.at)


def _said(found: Observation) -> dict[str, object]:
    drift = found.drift
    numbers = {name: getattr(drift, name) for name in ("alignment", "baseline", "drift_score", "rotation", "samples")}
    return {
        "goal_id": found.goal.goal_id,
        "severity": found.severity,
        "trend": found.course.trend,
        **numbers,
        "memories": found.all_memories,
        "most_drifted_embedders": drift.most_drifted,
    }


def observe_drift(parts: TimerParts) -> Timer | None:
    """The timer of a process with a store; None where it is switched off."""
    if parts.stages.store is None or not parts.settings.observe_drift:
        return None
    return Timer(NAME, every_s=600.0, due=DriftTimer(parts.stages.store, parts.stages.stage(Embed)).due)


TIMERS = (observe_drift,)
