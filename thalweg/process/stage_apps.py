"""Running a process's stages: their Faust apps, and which consumer group each stage is a member of.

All members of a Faust group run the same stages. On Kafka the stages that need no store are therefore a group of their
own, which workers join; those that need one are another, of the nodes that have it. On the embedded log one process
runs all.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import importlib
import logging
import socket
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from processors.frame.stage import StageRunner
from streams.log.base import Log
from streams.log.kafka_security import KafkaSecurity
from streams.log.sqlite import SqliteLog
from thalweg.environment import process_environment
from thalweg.process.parts import STOP_TIMEOUT_S, close_within
from thalweg.settings import Settings

logger = logging.getLogger(__name__)

GROUP = "thalweg"
STORE_GROUP = "thalweg-store"
RETRY_S = 1.0


def instance_id(home: Path) -> str:
    """A name for this data directory alone: after a restart the process has its partitions back at once."""
    place = f"{socket.gethostname()}\0{home.resolve()}"
    return f"thalweg-{hashlib.blake2b(place.encode(), digest_size=8).hexdigest()}"


def by_group(broker: str, runners: Sequence[StageRunner]) -> dict[str, list[StageRunner]]:
    """Consumer group -> its stages."""
    if not broker.startswith("kafka://"):
        return {GROUP: list(runners)}
    groups: dict[str, list[StageRunner]] = {}
    for runner in runners:
        groups.setdefault(STORE_GROUP if runner.stage.needs_store else GROUP, []).append(runner)
    return groups


async def run_stages(
    settings: Settings, log: Log, runners: Sequence[StageRunner], closers: list[Callable[[], Awaitable[None]]]
) -> None:
    """Run them until one dies, which is raised.

    Faust is loaded here, on a thread: importing it takes half a second, starting an app another.
    """
    worker = await asyncio.to_thread(importlib.import_module, "processors.frame.faust_app")
    if isinstance(log, SqliteLog):
        worker.use_log(log)
    is_kafka = settings.broker_url.startswith("kafka://")
    security = KafkaSecurity.from_environ(process_environment()) if is_kafka else None
    apps = []
    stops: list[Callable[[], Awaitable[None]]] = []
    closers.append(functools.partial(_stop, stops))
    for group, members in by_group(settings.broker_url, runners).items():
        directory = settings.home / "faust" / group
        directory.mkdir(parents=True, exist_ok=True)
        make = functools.partial(
            worker.make_app,
            settings.broker_url,
            members,
            group=group,
            directory=directory,
            instance_id=instance_id(settings.home),
            security=security,
        )
        app, running = await _start(worker, make)
        stops.append(functools.partial(_stop_app, running))
        apps.append(app)
    await asyncio.gather(*(worker.watch(app) for app in apps))


async def _stop_app(running: Any) -> None:
    await running.__aexit__(None, None, None)


async def _stop(stops: Sequence[Callable[[], Awaitable[None]]]) -> None:
    await close_within(STOP_TIMEOUT_S, *stops)


async def _start(worker: Any, make: Callable[[], Any]) -> tuple[Any, Any]:
    """An app that runs, and the context that stops it.

    A broker that goes away while it starts is waited for, as the app itself does later.
    """
    while True:
        app = make()
        running = worker.faust_app_running(app, stop_timeout=None)
        try:
            await running.__aenter__()
            return app, running
        except worker.BROKER_AWAY as error:
            logger.warning("the stages cannot start: %s; trying again", error)
            with contextlib.suppress(worker.BROKER_AWAY):
                await app.stop()
            await asyncio.sleep(RETRY_S)
