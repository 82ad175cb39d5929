"""`thalweg bench ingest`: events one at a time, a bulk import, and memories at a steady rate."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

from streams.clock import SystemClock
from streams.codec import encode
from streams.event_types.telemetry import SESSION_EVENT
from streams.events import Event
from streams.ids import uuid7
from streams.log import open_log
from streams.log.base import Outgoing
from streams.topics import TELEMETRY, with_partitions
from thalweg.bench.bare_log import appends_ms
from thalweg.bench.bare_sink import consume
from thalweg.bench.caller import write_at_rate, write_in_turn
from thalweg.bench.own_broker import refuse_used, wait_applied
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import environment, running_node, scratch_directory, texts
from thalweg.bench.transcript import write_transcript
from thalweg.control.requests import ask
from thalweg.importing.importer import ImportReport, import_files
from thalweg.process.rebuild import rebuild_store
from thalweg.settings import Settings, load

PRODUCERS = 8
CALLERS = 32
WARM_UP = 20
APPLY_S = 600.0
ACCEPTED = Target(2000.0, at_least=True)
BULK = Target(10_000.0, at_least=True)
SEARCHABLE = Target(1000.0)
OF_BARE = Target(0.5, at_least=True)


def measure_ingest(accepted: int, lines: int, rate: int, seconds: int, *, embedder: str, broker: str) -> Report:
    """Three ways in, and the materialiser beside a bare consumer of the same log."""
    settings = {
        "accepted": accepted,
        "n": lines,
        "rate": rate,
        "seconds": seconds,
        "embedder": embedder,
        "broker": broker or "sqlite://",
    }
    report = Report("ingest", settings)
    refuse_used(broker)
    with scratch_directory() as directory:
        _one_at_a_time(report, broker or f"sqlite://{directory / 'accepted.db'}", accepted)
        _bulk(report, directory, lines, broker)
        _at_rate(report, directory / "rate", rate, seconds, embedder, broker)
    return report


def _one_at_a_time(report: Report, broker: str, count: int) -> None:
    durations, seconds = appends_ms(broker, _observations(count), PRODUCERS)
    report.add("accepted_per_s", count / seconds, "events/s", ACCEPTED)
    report.add_quantiles("accepted", durations)


def _observations(count: int) -> list[Outgoing]:
    def event(text: str) -> Event:
        data = {"session_id": "bench", "event_type": "assistant", "role": "assistant", "text": text}
        return Event(str(uuid7()), "thalweg:bench", SESSION_EVENT, "bench", SystemClock().now(), data)

    return [encode(TELEMETRY.name, event(text)) for text in texts(count)]


def _bulk(report: Report, directory: Path, lines: int, broker: str) -> None:
    """An import until all of it can be asked for. Then the same log replayed, beside a bare consumer of it."""
    transcript, home = directory / "transcript.jsonl", directory / "bulk"
    write_transcript(transcript, lines)
    settings = load({}, environment(home, embedder="none", broker=broker))
    with running_node(home, embedder="none", broker=broker):
        started = time.perf_counter()
        imported = asyncio.run(_import(settings, transcript))
        published = time.perf_counter()
        ask(home, "wait", freshness=imported.freshness.to_json(), timeout_s=APPLY_S)
        applied = time.perf_counter()
    report.add("bulk_published_per_s", imported.events / (published - started), "events/s")
    report.add("bulk_applied_per_s", imported.events / (applied - started), "events/s", BULK)
    rebuilt = _replay(settings)
    bare = asyncio.run(consume(settings.broker_url, TELEMETRY.name, directory / "bare.duckdb"))
    report.add("replay_per_s", rebuilt["events"] / rebuilt["seconds"], "events/s")
    report.add("bare_sink_per_s", bare.events / bare.seconds, "events/s", bare=True)
    report.add(
        "replay_of_bare_sink", (rebuilt["events"] / rebuilt["seconds"]) / (bare.events / bare.seconds), "ratio", OF_BARE
    )


async def _import(settings: Settings, transcript: Path) -> ImportReport:
    log = open_log(settings.broker_url)
    await log.start()
    try:
        await log.create_topics(with_partitions(settings.partitions))
        return await import_files(log, "claude-code", [transcript], namespace="bench", clock=SystemClock())
    finally:
        await log.stop()


def _replay(settings: Settings) -> dict[str, Any]:
    """Rebuild the store from the log; nothing but the materialiser runs, as with the bare consumer."""
    return rebuild_store(settings, from_log=True)


def _at_rate(report: Report, home: Path, rate: int, seconds: int, embedder: str, broker: str) -> None:
    with running_node(home, embedder=embedder, broker=broker):
        wait_applied(home)  # on a broker, the import
        asyncio.run(write_in_turn(home, 1, texts(WARM_UP, seed=0)))
        started = time.perf_counter()
        written = asyncio.run(write_at_rate(home, rate, texts(rate * seconds), CALLERS))
        report.add("rate_kept_per_s", len(written) / (time.perf_counter() - started), "memories/s")
    report.add_quantiles("searchable_at_rate", [each.searchable_ms for each in written], p95=SEARCHABLE)
