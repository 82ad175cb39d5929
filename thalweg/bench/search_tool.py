"""`thalweg bench search --tool`: calls of one search tool through the door of a filled node."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from processors.embedding.hashing import HashingEmbedder
from streams.clock import SystemClock
from streams.codec import encode
from streams.errors import Unavailable
from streams.events import Event, wire_type
from streams.ids import uuid7
from streams.log import open_log
from streams.topics import MEMORY, with_partitions
from thalweg.bench.examples import SEARCH_ROWS, RowRequest, example, search_tool
from thalweg.bench.own_broker import wait_applied
from thalweg.bench.report import Report
from thalweg.bench.scratch import SocketClient, environment, resident_mb, running_node, scratch_directory, texts
from thalweg.bench.search import SEARCH_P95, measure_bare
from thalweg.control.requests import ask
from thalweg.settings import Settings
from thalweg.settings import load as load_settings

CHUNK = 500
FILL_S = 1800.0
WARM_UP = 10
POLL_S = 0.1
NAMESPACE = "default"


def measure_search_tool(name: str, sizes: Sequence[int], count: int, *, bare: bool = True) -> Report:
    """For each size: rows made as in use, by events through the processors. Then `count` calls of one caller."""
    report = Report("search", {"tool": name, "sizes": list(sizes), "n": count, "embedder": "hashing"})
    search_tool(name)
    questions = [" ".join(text.split()[:6]) for text in texts(count, seed=11)]
    for size in sizes:
        with scratch_directory() as directory:
            entries = texts(size)
            _measure(report, directory / "home", name, entries, questions)
            if bare:
                embedder = HashingEmbedder()
                measure_bare(
                    report,
                    size,
                    embedder.encode(entries),
                    embedder.encode(questions),
                    entries,
                    questions,
                    directory / "bare",
                )
    return report


def _measure(report: Report, home: Path, name: str, entries: Sequence[str], questions: Sequence[str]) -> None:
    """Time the calls on a second node, so that its indexes are whole.

    The node that applied the rows is stopped before.
    """
    size = len(entries)
    fill(report, home, SEARCH_ROWS[name], entries, "hashing")
    with running_node(home, embedder="hashing") as process:
        _wait_linked(home)
        report.add_quantiles(f"{name}_{size}", asyncio.run(_ask(home, name, questions)), p95=SEARCH_P95)
        report.add(f"resident_{size}_mb", resident_mb(process.pid), "MB")


def fill(report: Report, home: Path, stored: RowRequest, entries: Sequence[str], embedder: str) -> None:
    """A store with a row for each text, made by events; the node that applied them is stopped again."""
    asyncio.run(_publish(load_settings({}, environment(home, embedder=embedder)), stored, entries))
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


def _wait_linked(home: Path) -> None:
    """Until the node's indexes are whole. Raises Unavailable."""
    deadline = time.monotonic() + FILL_S
    while time.monotonic() < deadline:
        indexes = ask(home, "status")["indexes"]
        if indexes["keyword"]["state"] == "ready" and not indexes["vector"].get("unlinked"):
            return
        time.sleep(POLL_S)
    raise Unavailable(f"The indexes are not whole after {FILL_S:g} s.")


async def _ask(home: Path, name: str, questions: Sequence[str]) -> list[float]:
    """Milliseconds of each call, one after the other."""
    tool = search_tool(name)
    calls = await SocketClient.open(home)
    await calls.greet()
    durations = []
    for question in [*questions[:WARM_UP], *questions]:
        arguments = example(tool, question)
        started = time.perf_counter()
        await calls.request("tools/call", {"name": name, "arguments": arguments})
        durations.append((time.perf_counter() - started) * 1000)
    calls.close()
    return durations[min(WARM_UP, len(questions)) :]
