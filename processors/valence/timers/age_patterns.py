"""age_patterns: a pattern that was not observed for long becomes fading, later archived.

A step is named by the pattern and its last observation: once the pattern is observed again, it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb

from processors.frame.timer import Timer, due_event
from processors.valence.rules.patterns import ageing_steps
from streams.clock import format_time
from streams.event_types.valence_kb import PATTERN_STATUS_CHANGED
from streams.events import Event

NAME = "age_patterns"

_PATTERNS = """
SELECT p.namespace, p.pattern_id, p.status, p.last_observed_at,
       coalesce((SELECT list(c.to_status) FROM vkb_pattern_changes c
                 WHERE c.namespace = p.namespace AND c.pattern_id = p.pattern_id
                   AND c.last_observed_at = p.last_observed_at), []) AS applied
FROM vkb_patterns p ORDER BY p.namespace, p.pattern_id"""


def due_steps(cursor: duckdb.DuckDBPyConnection, now: datetime) -> Iterator[Event]:
    """The steps of all namespaces that are due and not applied yet."""
    for namespace, pattern_id, status, last_observed_at, applied in cursor.execute(_PATTERNS).fetchall():
        last_observed = last_observed_at.replace(tzinfo=UTC)
        observed = format_time(last_observed)
        for step in ageing_steps(status, last_observed, now):
            if step.to_status in applied:
                continue
            data = {
                "pattern_id": pattern_id,
                "from_status": step.from_status,
                "to_status": step.to_status,
                "last_observed": observed,
            }
            about = (pattern_id, observed, step.to_status)
            yield due_event(NAME, PATTERN_STATUS_CHANGED, namespace, data, about=about, due_at=step.due_at)


AGE_PATTERNS = Timer(NAME, every_s=600.0, due=due_steps)
