"""A timer: events that become due by the clock. A domain declares it; a reducer decides what they change.

An event's id and time are functions of what it is about and of when that was due, not of the clock that noticed it.
A node that looks twice, or two nodes that look at once, publish the same event, which is applied once; and a replay
needs no clock.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb

from processors.frame.domains import modules_of
from processors.frame.stage import StageParts
from storage.reader import Reader
from streams.clock import Clock
from streams.codec import encode
from streams.errors import Unavailable
from streams.events import Event, event_types
from streams.failpoints import hit
from streams.ids import derived_id
from streams.log.base import Log

logger = logging.getLogger(__name__)

PUBLISH_TIMEOUT_S = 30.0
EVENTS_OF_A_BATCH = 1000


@dataclass(frozen=True)
class Timer:
    """What is looked for every `every_s` seconds. `due` gives the events that are due by a time and not applied yet."""

    name: str
    every_s: float
    due: Callable[[duckdb.DuckDBPyConnection, datetime], Iterable[Event]]

    async def run(self, reader: Reader, log: Log, clock: Clock) -> None:
        """Publish what is due, for ever. While the log or the store is down it waits for its next turn."""
        while True:
            try:
                await self.publish_due(reader, log, clock.now())
            except Unavailable as error:
                logger.warning("the timer %s waits: %s", self.name, error.message)
            await asyncio.sleep(self.every_s)

    async def publish_due(self, reader: Reader, log: Log, now: datetime) -> int:
        """Publish the events that are due; returns how many. Raises Unavailable."""
        due = await reader.run(lambda cursor: list(self.due(cursor, now)))
        records = [encode(event_types()[event.type].topic, event) for event in due]
        for start in range(0, len(records), EVENTS_OF_A_BATCH):
            hit("mid_timer")
            await log.publish(records[start : start + EVENTS_OF_A_BATCH], timeout_s=PUBLISH_TIMEOUT_S)
            hit("mid_timer")
        return len(due)


def due_event(
    timer: str, event_type: str, namespace: str, data: Mapping[str, Any], *, about: Sequence[str], due_at: datetime
) -> Event:
    """An event of this timer.

    Its id is a function of the timer, the namespace and `about`: a subject, an hour, a step.
    """
    identity = derived_id(timer, namespace, *about)
    return Event(identity, f"thalweg:stage/{timer}", event_type, namespace, due_at, data)


@dataclass(frozen=True)
class TimerParts:
    """What a process has for its timers. `settings`: the node's, an attribute each."""

    stages: StageParts
    settings: Any


def timers(parts: TimerParts) -> tuple[Timer, ...]:
    """Every timer of this process, found in the `TIMERS` of the `timers` of each domain.

    Each of these is a timer, or a function that makes one of the process's parts, and None where it is switched off.
    """
    found = (timer for module in modules_of("timers") for timer in module.TIMERS)
    made = (timer if isinstance(timer, Timer) else timer(parts) for timer in found)
    return tuple(timer for timer in made if timer is not None)
