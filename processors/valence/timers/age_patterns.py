"""age_patterns: the stream timer of Valence's patterns. What was not met for long is told to be fading, later archived.

A step's id and time are functions of the pattern and its last observation, not of the clock that noticed it: a node
that looks again, or two that look at once, tell the same fact, which is applied once. A pattern that is met again has
another last observation, so that an older step says nothing about it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from datetime import UTC, datetime

import duckdb

from processors.valence.rules.patterns import ageing_steps
from storage.reader import Reader
from streams.clock import Clock, format_time
from streams.codec import encode
from streams.errors import Unavailable
from streams.event_types.valence_kb import PATTERN_STATUS_CHANGED
from streams.events import Event
from streams.ids import derived_id
from streams.log.base import Log
from streams.topics import DERIVED

logger = logging.getLogger(__name__)

NAME = "age_patterns"
EVERY_S = 600.0
PUBLISH_TIMEOUT_S = 30.0
AT_ONCE = 1000

_UNTOLD = """
SELECT p.namespace, p.pattern_id, p.status, p.last_observed_at,
       coalesce((SELECT list(c.to_status) FROM vkb_pattern_changes c WHERE c.namespace = p.namespace AND c.pattern_id = p.pattern_id
                 AND c.last_observed_at = p.last_observed_at), []) AS told
FROM vkb_patterns p ORDER BY p.namespace, p.pattern_id"""


async def age_patterns(reader: Reader, log: Log, clock: Clock) -> None:
    """Look every ten minutes, for ever. While the log or the store is down it waits for its next turn."""
    while True:
        try:
            await tell_steps(reader, log, clock.now())
        except Unavailable as error:
            logger.warning("%s waits: %s", NAME, error.message)
        await asyncio.sleep(EVERY_S)


async def tell_steps(reader: Reader, log: Log, now: datetime) -> int:
    """Publish the steps that are due and not told yet; how many. Raises Unavailable."""
    due = await reader.run(lambda cursor: list(due_steps(cursor, now)))
    for start in range(0, len(due), AT_ONCE):
        await log.publish(
            [encode(DERIVED.name, step) for step in due[start : start + AT_ONCE]], timeout_s=PUBLISH_TIMEOUT_S
        )
    return len(due)


def due_steps(cursor: duckdb.DuckDBPyConnection, now: datetime) -> Iterator[Event]:
    """The steps of all namespaces that are due and not told yet, as facts."""
    for namespace, pattern_id, status, last_observed_at, told in cursor.execute(_UNTOLD).fetchall():
        last_observed = last_observed_at.replace(tzinfo=UTC)
        for step in ageing_steps(status, last_observed, now):
            if step.to_status in told:
                continue
            observed = format_time(last_observed)
            identity = derived_id(NAME, namespace, pattern_id, observed, step.to_status)
            data = {
                "pattern_id": pattern_id,
                "from_status": step.from_status,
                "to_status": step.to_status,
                "last_observed": observed,
            }
            yield Event(identity, f"thalweg:stage/{NAME}", PATTERN_STATUS_CHANGED, namespace, step.due_at, data)
