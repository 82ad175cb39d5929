"""The Faust app: one agent a stage, crash-only. Faust assigns partitions and feeds the agents, no more.

An agent takes records without acknowledging them, runs its stage, and acknowledges once the facts are durable. When a
stage raises, the app crashes and the process ends: a restart goes on from the last acknowledged record, and
deterministic ids make the repeats harmless (docs/adr/0001).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiokafka  # noqa: F401  before its parts, which Faust imports: see streams/partitioning.py
import faust
from aiokafka.errors import KafkaError
from faust.contrib.asgi import faust_app_running
from faust.tables import TableManager

from processors.frame.stage import Derived, Stage, StageRunner
from streams.errors import StageStopped
from streams.failpoints import hit
from streams.log.base import Record
from streams.log.kafka_security import KafkaSecurity
from streams.sqlite_transport import use_log

__all__ = ["BROKER_AWAY", "faust_app_running", "make_app", "use_log", "watch"]

_Derived = tuple[Sequence[tuple[Any, Record]], Derived]
"""A batch, as (Faust's event, record), and what follows from it."""

BROKER_AWAY = (KafkaError, OSError)
"""What the start of an app raises while there is no broker."""

TOPICS_AGE_MS = 5_000
"""How old what a member knows of the topics may be. A group that is formed while a broker that has just come back does
not name its topics yet is assigned nothing, and stays so until a member looks again: after 5 minutes by default."""


class NoTables(TableManager):
    """Declares no tables: Faust would wait a second for them, and so would a first caller."""

    async def on_start(self) -> None:
        await self._update_channels()
        await self.recovery.start()


def make_app(
    broker: str,
    runners: Sequence[StageRunner],
    *,
    directory: Path,
    group: str = "thalweg",
    instance_id: str | None = None,
    security: KafkaSecurity | None = None,
) -> faust.App:
    """The app with an agent for each runner, a member of this consumer group.

    `broker`: `sqlite:///path` or `kafka://host:port`. `directory`: Faust's own.
    `instance_id` (stable per worker) lets a restarted worker take its partitions back at once.
    `security`: the log's, for a secured Kafka.
    """
    app = faust.App(
        group,
        broker=broker.replace("kafka://", "aiokafka://"),
        broker_credentials=security.faust_credentials() if security else None,
        datadir=str(directory),
        topic_allow_declare=False,
        topic_disable_leader=True,
        web_enabled=False,
        stream_wait_empty=False,
        stream_recovery_delay=0,
        stream_buffer_maxsize=4096,
        broker_max_poll_records=500,
        broker_session_timeout=6,
        broker_heartbeat_interval=1,
        broker_request_timeout=20,
        broker_commit_interval=1.0,
        consumer_metadata_max_age_ms=TOPICS_AGE_MS,
        producer_linger=0,
        producer_acks=-1,
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=instance_id or "",
        TableManager=NoTables,
        agent_supervisor="mode.supervisors:CrashingSupervisor",
        key_serializer="raw",
        value_serializer="raw",
    )
    app.on_partitions_revoked.connect(_revoked)
    for runner in runners:
        _add_agent(app, runner)
    return app


async def _revoked(app: faust.App, revoked: Any, **_: Any) -> None:
    """Partitions are revoked: what is not acknowledged goes to their next member. Only a test has to act on it."""
    hit("in_revoke")


def _add_agent(app: faust.App, runner: StageRunner) -> None:
    stage = runner.stage
    topic = app.topic(stage.source.name, key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")

    async def agent(stream: Any) -> None:
        waiting: asyncio.Queue[Any] = asyncio.Queue(maxsize=4 * stage.batch_size)
        derived: asyncio.Queue[_Derived] = asyncio.Queue(maxsize=1)
        leaving = asyncio.Event()
        works = {"derive": _derive(runner, waiting, derived), "publish": _publish(runner, derived)}
        tasks = [
            asyncio.create_task(_crashing(app, runner, work, leaving), name=f"{stage.name}/{name}")
            for name, work in works.items()
        ]
        runner.life = "running"
        try:
            async for event in stream.noack().events():
                await waiting.put(event)
        finally:
            runner.life = "dead"
            leaving.set()
            for task in tasks:
                task.cancel()

    app.agent(topic, name=stage.name)(agent)


async def _derive(runner: StageRunner, waiting: asyncio.Queue[Any], derived: asyncio.Queue[_Derived]) -> None:
    """Run the stage on batches of waiting records; the next batch while the last is published.

    Faust's own `noack_take` polls its buffer every millisecond, also when there is nothing to do.
    """
    while True:
        batch = await _batch(runner.stage, waiting)
        await derived.put((batch, await runner.derive([record for _, record in batch])))


async def _publish(runner: StageRunner, derived: asyncio.Queue[_Derived]) -> None:
    """Publish in the order of the source, then acknowledge."""
    while True:
        batch, found = await derived.get()
        await runner.publish([record for _, record in batch], found)
        for event, _ in batch:
            event.ack()
        hit("after_ack")


async def _crashing(
    app: faust.App, runner: StageRunner, work: Coroutine[Any, Any, None], leaving: asyncio.Event
) -> None:
    """Crash the app with any error of the work.

    A cancellation that is not ours (a library's, inside the stage) would end it in silence: it crashes the app too.
    """
    try:
        await work
    except asyncio.CancelledError:
        if leaving.is_set():
            raise
        await _crash(app, runner, StageStopped(f"The stage {runner.stage.name} was cancelled by its own code."))
    except Exception as error:
        await _crash(app, runner, error)


async def _batch(stage: Stage, waiting: asyncio.Queue[Any]) -> list[tuple[Any, Record]]:
    """The next records: at most `batch_size` that may concern the stage.

    It lingers only while there are fewer: behind a backlog, pauses would be all that takes time.
    """
    first = await waiting.get()
    batch = [(first, to_record(first.message))]
    if waiting.qsize() < stage.batch_size - 1:
        await stage.linger()
    left = stage.batch_size - stage.may_concern(batch[0][1])
    while left > 0 and not waiting.empty():
        event = waiting.get_nowait()
        record = to_record(event.message)
        batch.append((event, record))
        left -= stage.may_concern(record)
    return batch


async def _crash(app: faust.App, runner: StageRunner, error: Exception) -> None:
    runner.life = "dead"
    runner.failure = runner.failure or f"{type(error).__name__}: {error}"
    await app.crash(error)


def to_record(message: Any) -> Record:
    """A Faust message as the record it is."""
    headers = message.headers or ()
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return Record(
        message.topic,
        message.partition,
        message.offset,
        int((message.timestamp or 0) * 1000),
        message.key,
        message.value,
        tuple((name, value) for name, value in pairs),
    )


async def watch(app: faust.App) -> None:
    """Wait as long as the app is well; raise what made it crash, so that the process can end."""
    while not app.should_stop:
        await asyncio.sleep(0.1)
    reason = app._crash_reason if getattr(app, "_crash_reason", None) else RuntimeError("the Faust app stopped")
    raise reason
