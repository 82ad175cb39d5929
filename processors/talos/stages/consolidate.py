"""consolidate: derives insights, prunes and deprecated patterns once a day, and rates the day.

What was observed repeatedly becomes an insight, entities of low confidence are hidden, a pattern that does not occur
any more is deprecated, and the day before is rated. The first memory of a UTC day (of a namespace) sets it off, so that
it follows from the log and not from a clock. `dedup` merges duplicates as they come; here their clusters are read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Any

import duckdb

from processors.frame.stage import Stage, StageParts
from processors.memory.stages.embed import Embed
from processors.talos.read.significance_counts import count_significance
from processors.talos.rules.extraction import EXTRACTED_FROM, IMPLIED
from processors.talos.rules.significance import rate
from storage.applied import AppliedPositions
from storage.reader import Reader
from streams.clock import format_time
from streams.event_types.memory import EMBEDDED
from streams.event_types.talos import ENTITIES_EXTRACTED, ENTITIES_PRUNED, PATTERN_DEPRECATED, SIGNIFICANCE_RATED
from streams.events import Event, LoggedEvent, wire_type
from streams.positions import Freshness
from streams.topics import MEMORY

SETTLED_DAYS = 7
"""Observations younger than this are not yet made into an insight."""
LEAST_CONFIDENCE = 0.3
ABSENT_DAYS, ABSENT_SESSIONS = 90, 10
"""A pattern is deprecated when it has not occurred for this many days, nor in at least this many sessions that closed
since: without sessions, nothing could occur."""

_LAPSED = """
SELECT p.pattern_id, p.last_occurred_at FROM patterns p
WHERE p.namespace = $1 AND p.status <> 'deprecated' AND p.last_occurred_at <= $2
  AND (SELECT count(*) FROM talos_sessions s WHERE s.namespace = p.namespace AND s.ended_at > p.last_occurred_at) >= $3
ORDER BY p.pattern_id"""
_SETTLED = """
WITH members AS (
    SELECT coalesce(m.into_id, e.entity_id) AS canonical_id, e.entity_id,
           EXISTS (FROM relations r WHERE r.namespace = $1 AND r.relation_type = 'CRYSTALLIZED_INTO'
                   AND r.from_id = e.entity_id) AS is_part
    FROM entities e LEFT JOIN merges m ON m.namespace = e.namespace AND m.record_id = e.entity_id
    WHERE e.namespace = $1 AND e.label = 'Observation' AND e.created_at <= $2)
SELECT c.entity_id, c.text, c.domain, c.created_at, list(members.entity_id ORDER BY members.entity_id)
FROM members JOIN entities c ON c.namespace = $1 AND c.entity_id = members.canonical_id
GROUP BY ALL
HAVING count(*) >= 2 AND NOT bool_and(is_part)
ORDER BY c.entity_id"""


class Consolidate(Stage):
    """The first memory of a day -> insights, prunes, deprecated patterns, the rating of the day before."""

    name = "consolidate"
    source = MEMORY
    waits_for = frozenset({"dedup"})
    needs_store = True
    accepts = EXTRACTED_FROM | {wire_type("talos.session.opened"), wire_type("talos.session.closed")}
    batch_size = 100
    linger_s = 1.0

    _applied: AppliedPositions

    def __init__(self, reader: Reader, applied: AppliedPositions, embed: Embed) -> None:
        self._reader, self._applied, self._embed = reader, applied, embed
        self._days: dict[str, str] = {}

    @classmethod
    def made(cls, parts: StageParts) -> Consolidate:
        store = parts.needed_store
        return cls(store.reader, store.applied, parts.stage(Embed))

    async def facts(self, events: Sequence[LoggedEvent]) -> list[Sequence[Event]]:
        firsts = [logged for logged in events if self._is_new_day(logged)]
        if firsts:
            await self.store_has(Freshness.after(logged.position for logged in firsts), ["dedup"])
        return [await self._consolidated(logged) if self._is_new_day(logged) else [] for logged in events]

    def _is_new_day(self, logged: LoggedEvent) -> bool:
        return logged.event.time.date().isoformat() > self._days.get(logged.event.namespace, "")

    async def _consolidated(self, logged: LoggedEvent) -> list[Event]:
        event = logged.event
        found = await self._reader.run(lambda cursor: consolidate(cursor, logged))
        made = [entity for kind, _, data in found if kind == ENTITIES_EXTRACTED for entity in data["entities"]]
        vectors = self.fact(logged, EMBEDDED, {}, about=("embedded",))
        embedded = await self._embed.facts_of_texts(vectors, [(entity["id"], entity["text"]) for entity in made])
        self._days[event.namespace] = event.time.date().isoformat()
        return [*(self.fact(logged, kind, data, about=(identity,)) for kind, identity, data in found), *embedded]


def consolidate(cursor: duckdb.DuckDBPyConnection, logged: LoggedEvent) -> list[tuple[str, str, dict[str, Any]]]:
    """(event type, what makes its id, data) of all that the day brings. Nothing when it was looked at before."""
    namespace, time = logged.event.namespace, logged.event.time.replace(tzinfo=None)
    day = (time - timedelta(days=1)).date()
    done = cursor.execute("SELECT 1 FROM significance WHERE namespace = ? AND day >= ?", [namespace, day]).fetchone()
    if done is not None:
        return []
    found = [
        synthesized(*row)
        for row in cursor.execute(_SETTLED, [namespace, time - timedelta(days=SETTLED_DAYS)]).fetchall()
    ]
    facts = [(ENTITIES_EXTRACTED, data["entities"][0]["id"], data) for data in found]
    doubtful = cursor.execute(
        "SELECT entity_id FROM entities_live WHERE namespace = ? AND confidence < ? ORDER BY entity_id",
        [namespace, LEAST_CONFIDENCE],
    ).fetchall()
    if doubtful:
        reason = f"confidence below {LEAST_CONFIDENCE}"
        facts.append(
            (ENTITIES_PRUNED, "pruned", {"record_ids": [record_id for (record_id,) in doubtful], "reason": reason})
        )
    lapsed = cursor.execute(_LAPSED, [namespace, time - timedelta(days=ABSENT_DAYS), ABSENT_SESSIONS]).fetchall()
    reason = f"not met for {ABSENT_DAYS} days and {ABSENT_SESSIONS} sessions"
    for pattern_id, last in lapsed:
        ended = {"pattern_id": pattern_id, "last_occurred_at": format_time(last.replace(tzinfo=UTC)), "reason": reason}
        facts.append((PATTERN_DEPRECATED, f"{pattern_id} {ended['last_occurred_at']}", ended))
    counts = count_significance(cursor, namespace)
    rating = rate(counts)
    data = {"day": day.isoformat(), "score": rating.score, "level": rating.level, "counts": counts.to_json()}
    return [*facts, (SIGNIFICANCE_RATED, "significance", data)]


def synthesized(
    canonical_id: str, text: str, domain: str | None, created_at: Any, record_ids: Sequence[str]
) -> dict[str, Any]:
    """The insight of a cluster of observations. Its id depends on the oldest alone: a later member finds the same."""
    number = int.from_bytes(hashlib.blake2b(canonical_id.encode(), digest_size=8).digest(), "big") % 10**12
    identity = f"insight-{created_at:%Y-%m-%d}-{number:012d}"
    properties = {"domain": domain} if domain else {}
    insight = {
        "id": identity,
        "label": "Insight",
        "text": f"Observed repeatedly: {text}",
        "confidence": IMPLIED,
        "properties": properties,
    }
    relations = [{"type": "CRYSTALLIZED_INTO", "from": record_id, "to": identity} for record_id in record_ids]
    return {"source_event_id": canonical_id, "entities": [insight], "relations": relations}
