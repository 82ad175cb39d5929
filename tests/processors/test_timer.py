"""A timer's event is a function of what it is about: nodes that look late, twice or at once publish one event."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import duckdb

from processors.frame.stage import StageParts, StoreParts
from processors.frame.timer import Timer, TimerParts, due_event, timers
from storage.database import Database
from storage.reader import Reader
from streams.clock import SystemClock
from streams.codec import decode
from streams.errors import LogUnavailable
from streams.events import Event, wire_type
from streams.log import open_log
from streams.log.base import Log, Record
from streams.topics import DERIVED, TOPICS
from tests.patience import SOON_S
from tests.processors.harness import Store
from tests.schema import NOW, migrated_home
from thalweg.settings import Settings

HOUR = timedelta(hours=1)
PRUNED = wire_type("talos.entities.pruned")


def hours(cursor: duckdb.DuckDBPyConnection, now: datetime) -> Iterator[Event]:
    """One event for the hour that has ended, unless it is applied."""
    hour = now.replace(minute=0, second=0, microsecond=0) - HOUR
    data = {"record_ids": [hour.isoformat()], "reason": "hourly"}
    event = due_event("hourly", PRUNED, "default", data, about=(hour.isoformat(),), due_at=hour + HOUR)
    if not cursor.execute("SELECT 1 FROM events WHERE event_id = ?", [event.id]).fetchone():
        yield event


HOURLY = Timer("hourly", every_s=0.001, due=hours)


async def published(log: Log) -> list[Record]:
    ends = await log.end_offsets([DERIVED.name])
    reader = await log.reader(dict.fromkeys(ends, 0))
    try:
        return list(await reader.read(timeout_s=0.2, max_records=100)) if any(ends.values()) else []
    finally:
        await reader.close()


async def test_an_hour_is_published_once_it_is_over_and_applied_once_however_often_and_when_it_is_noticed(
    tmp_path: Path,
) -> None:
    log = open_log(f"sqlite://{tmp_path / 'log.db'}")
    await log.start()
    await log.create_topics(TOPICS)
    store = Store(Database(migrated_home(tmp_path / "home")))
    reader = Reader(store.database)
    late = [NOW, NOW + timedelta(minutes=59)]
    assert [await HOURLY.publish_due(reader, log, now) for now in late] == [1, 1]  # two nodes, neither applied yet
    records = await published(log)
    store.apply(*records)
    events = [logged.event for record in records for logged in decode(record)]
    assert len(events) == 2 and events[0] == events[1] and events[0].time == NOW
    assert store.sql("SELECT count(*) FROM prunes") == [(1,)]
    assert [await HOURLY.publish_due(reader, log, now) for now in (*late, NOW + HOUR)] == [0, 0, 1]
    await log.stop()
    reader.close()
    store.database.close()


async def test_a_timer_waits_for_a_log_that_is_down_and_goes_on(tmp_path: Path) -> None:
    store = Store(Database(migrated_home(tmp_path / "home")))
    reader, accepted = Reader(store.database), asyncio.get_running_loop().create_future()

    class Returning:
        """A log that is down for the first two turns."""

        turns = 0

        async def publish(self, records: object, *, timeout_s: float) -> None:
            self.turns += 1
            if self.turns < 3:
                raise LogUnavailable("The log is down.")
            if not accepted.done():
                accepted.set_result(records)

    running = asyncio.create_task(HOURLY.run(reader, Returning(), SystemClock()))  # type: ignore[arg-type]
    await asyncio.wait_for(accepted, SOON_S)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    reader.close()
    store.database.close()


def test_every_timer_of_a_domain_is_found() -> None:
    parts = StageParts(None)
    assert [timer.name for timer in timers(TimerParts(parts, Settings()))] == ["recalibrate", "age_patterns"]
    with_store = StageParts(None, StoreParts(None, None, None))  # type: ignore[arg-type]
    names = {
        is_on: [timer.name for timer in timers(TimerParts(with_store, Settings(observe_drift=is_on)))]
        for is_on in (True, False)
    }
    assert names == {
        True: ["observe_drift", "recalibrate", "age_patterns"],
        False: ["recalibrate", "age_patterns"],
    }
