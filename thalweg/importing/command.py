"""`thalweg import`: publish files to the log, then wait until the node has applied them."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn, TransferSpeedColumn

from streams.clock import SystemClock
from streams.log import open_log
from streams.topics import with_partitions
from thalweg.client.node_process import ensure_node
from thalweg.control.requests import ask
from thalweg.importing.ignore import IgnoreLists
from thalweg.importing.importer import ImportProgress, ImportReport, import_files
from thalweg.importing.stored import Stored
from thalweg.settings import Settings

APPLY_TIMEOUT_S = 3600.0


def run_import(settings: Settings, kind: str, paths: list[Path], *, quiet: bool = False) -> dict[str, Any]:
    """Import, wait until all of it can be queried, and report counts. Starts the node when none runs."""
    ensure_node(settings.home)
    with _bar(quiet) as bar:
        report = asyncio.run(_publish(settings, kind, paths, bar))
    applied = ask(settings.home, "wait", freshness=report.freshness.to_json(), timeout_s=APPLY_TIMEOUT_S)["applied"]
    return {**asdict(report), "freshness": report.freshness.to_json(), "applied": applied}


async def _publish(settings: Settings, kind: str, paths: list[Path], bar: Progress) -> ImportReport:
    log = open_log(settings.broker_url)
    await log.start()
    try:
        await log.create_topics(with_partitions(settings.partitions))
        task = bar.add_task(f"import {kind}", total=None)

        def show(progress: ImportProgress) -> None:
            text = f"{progress.events} events, {progress.unreadable} unreadable"
            bar.update(task, total=progress.bytes_total, completed=progress.bytes_read, description=text)

        return await import_files(
            log,
            kind,
            paths,
            namespace=settings.namespace,
            clock=SystemClock(),
            on_progress=show,
            find_stored=functools.partial(_stored, settings.home),
            ignore_reason=IgnoreLists(settings.home).reason,
        )
    finally:
        await log.stop()


async def _stored(home: Path, keys: Sequence[str], letters: Sequence[str]) -> Stored:
    """What of these the node's store holds."""
    answer = await asyncio.to_thread(ask, home, "stored", keys=list(keys), letters=list(letters))
    return Stored(answer["events"], set(answer["letters"]))


def _bar(quiet: bool) -> Progress:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, disable=quiet, transient=False)
