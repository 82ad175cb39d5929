"""`thalweg bench search --tool`: a search tool through the door of a filled node, called by some."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from processors.embedding.hashing import HashingEmbedder
from streams.clock import SystemClock
from streams.codec import encode
from streams.errors import Unavailable
from streams.events import Event, wire_type
from streams.ids import uuid7
from streams.log import open_log
from streams.log.sqlite import SqliteLog
from streams.topics import MEMORY, with_partitions
from thalweg.bench.examples import SEARCH_P95, SEARCH_P99, SEARCH_ROWS, RowRequest, example, search_tool
from thalweg.bench.own_broker import wait_applied
from thalweg.bench.ready_fill import publish_ready
from thalweg.bench.recall import load_for_recall
from thalweg.bench.report import Report
from thalweg.bench.scratch import (
    SocketClient,
    environment,
    processor_s,
    questions,
    resident_mb,
    running_node,
    scratch_directory,
    texts,
)
from thalweg.bench.search import measure_bare
from thalweg.control.requests import ask
from thalweg.settings import Settings
from thalweg.settings import load as load_settings

CHUNK = 500
FILL_S = 1800.0
WARM_UP = 10
POLL_S = 0.1
NAMESPACE = "default"
HASHING = "hashing"


def measure_search_tool(
    name: str,
    sizes: Sequence[int],
    count: int,
    embedder: str = HASHING,
    *,
    callers: Sequence[int] = (1,),
    bare: bool = True,
) -> Report:
    """For each size: rows made as in use, by events through the processors. Then `count` calls a run.

    `callers`: how many share the calls of a run, one run each.
    """
    search_tool(name)
    about = {"tool": name, "sizes": list(sizes), "n": count, "callers": list(callers), "embedder": embedder}
    report = Report("search", about)
    asked = questions(count)
    for size in sizes:
        with scratch_directory() as directory:
            entries = texts(size)
            _measure(report, directory / "home", name, entries, asked, callers, embedder)
            if bare:
                model = HashingEmbedder()
                measure_bare(
                    report,
                    size,
                    model.encode(entries),
                    model.encode(asked),
                    entries,
                    asked,
                    directory / "bare",
                )
    return report


def _measure(
    report: Report,
    home: Path,
    name: str,
    entries: Sequence[str],
    questions: Sequence[str],
    callers: Sequence[int],
    embedder: str,
) -> None:
    """Time the calls on a second node, so that its indexes are whole.

    The node that applied the rows is stopped before.
    """
    size, target = len(entries), SEARCH_P99.get(name)
    fill(report, home, SEARCH_ROWS[name], entries, embedder)
    with running_node(home, embedder=embedder) as process:
        wait_linked(home)
        for number in callers:
            run = f"{name}_{size}" if number == 1 else f"{name}_{size}_{number}_callers"
            calls = asyncio.run(_ask(home, name, questions, number, process.pid))
            alone = number == 1
            report.add_quantiles(
                run,
                calls.durations_ms,
                p95=SEARCH_P95 if alone and target is None else None,
                p99=target if alone else None,
            )
            report.add(f"{run}_per_s", calls.per_s, "/s")
            if calls.processor_ms is not None:
                report.add(f"{run}_cpu_ms", calls.processor_ms, "ms")
        report.add(f"resident_{size}_mb", resident_mb(process.pid), "MB")


def fill(report: Report, home: Path, stored: RowRequest, entries: Sequence[str], embedder: str) -> None:
    """A store with a row for each text, made by events; the node that applied them is stopped again.

    Rows that are published with their vectors have texts like these (`search_store`).
    """
    settings = load_settings({}, environment(home, embedder=embedder))
    if stored.is_ready:
        log, model = SqliteLog(urlsplit(settings.broker_url).path), load_for_recall(embedder)
        asyncio.run(publish_ready(log, settings.partitions, partial(_event, stored), len(entries), model))
    else:
        asyncio.run(_publish(settings, stored, entries))
    with running_node(home, embedder=embedder):
        started = time.perf_counter()
        wait_applied(home, FILL_S)
        report.add(f"applied_{len(entries)}_per_s", len(entries) / (time.perf_counter() - started), "rows/s")


async def _publish(settings: Settings, stored: RowRequest, entries: Sequence[str]) -> None:
    """The requests by which the rows come about, on the log before a node reads it."""
    log = open_log(settings.broker_url)
    await log.start()
    try:
        await log.create_topics(with_partitions(settings.partitions))
        for start in range(0, len(entries), CHUNK):
            await log.publish(
                [encode(MEMORY.name, _event(stored, text)) for text in entries[start : start + CHUNK]], timeout_s=60.0
            )
    finally:
        await log.stop()


def _event(stored: RowRequest, text: str) -> Event:
    return Event(
        str(uuid7()), "thalweg:bench", wire_type(stored.short_type), NAMESPACE, SystemClock().now(), stored.data(text)
    )


def wait_linked(home: Path) -> None:
    """Wait until the node's indexes are whole, with what the views compare. Raises Unavailable."""
    deadline = time.monotonic() + FILL_S
    while time.monotonic() < deadline:
        indexes = ask(home, "status")["indexes"]
        is_linked = indexes["keyword"]["state"] == "ready" and not indexes["vector"].get("unlinked")
        if is_linked and indexes["features"]["lacking"] == 0:
            return
        time.sleep(POLL_S)
    raise Unavailable(f"The indexes are not whole after {FILL_S:g} s.")


class _Calls(NamedTuple):
    """Milliseconds of each call, how many were answered a second, and the node's processor time for one.

    The latter where the system tells it.
    """

    durations_ms: list[float]
    per_s: float
    processor_ms: float | None


async def _ask(home: Path, name: str, questions: Sequence[str], callers: int, pid: int) -> _Calls:
    """The calls: each caller asks the next question when it is answered. The first calls are not counted."""
    clients = [await SocketClient.open(home) for _ in range(callers)]
    for client in clients:
        await client.greet()
    await _call(clients, name, questions[:WARM_UP])
    before, started = processor_s(pid), time.perf_counter()
    durations = await _call(clients, name, questions)
    elapsed, after = time.perf_counter() - started, processor_s(pid)
    for client in clients:
        client.close()
    taken = None if before is None or after is None else 1000 * (after - before) / len(questions)
    return _Calls(durations, len(questions) / elapsed, taken)


async def _call(clients: Sequence[SocketClient], name: str, questions: Sequence[str]) -> list[float]:
    """Milliseconds of each call."""
    tool, left = search_tool(name), iter(questions)
    durations: list[float] = []

    async def ask(client: SocketClient) -> None:
        for question in left:
            started = time.perf_counter()
            await client.request("tools/call", {"name": name, "arguments": example(tool, question)})
            durations.append((time.perf_counter() - started) * 1000)

    await asyncio.gather(*map(ask, clients))
    return durations
