"""`thalweg bench write`: a write through the real door, until it is accepted and until it can be searched."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from processors.embedding.load import load_embedder
from thalweg.bench.bare_log import appends_ms, memory_record
from thalweg.bench.caller import write_in_turn
from thalweg.bench.examples import ANSWER_P95, WRITE, write_tool
from thalweg.bench.own_broker import refuse_used
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import running_node, scratch_directory, texts

WARM_UP = 20
ALONE_P95 = Target(20.0)
EIGHT_P99 = Target(60.0)
MODEL_TEXTS = 50


def measure_write(callers: Sequence[int], count: int, *, embedder: str, broker: str, tool: str = WRITE) -> Report:
    """`count` calls for each number of callers, beside bare appends of records of that size and the model alone."""
    settings = {"tool": tool, "callers": list(callers), "n": count, "embedder": embedder, "broker": broker or "sqlite://"}
    report = Report("write", settings)
    write_tool(tool)
    refuse_used(broker)
    with scratch_directory() as directory:
        home = directory / "home"
        with running_node(home, embedder=embedder, broker=broker):
            asyncio.run(write_in_turn(home, 1, texts(WARM_UP, seed=0), tool))
            for number in callers:
                _through_the_door(report, home, number, count, tool)
        for number in callers:
            records = [memory_record(text) for text in texts(count, seed=number)]
            durations, _ = appends_ms(broker or f"sqlite://{directory / 'bare.db'}", records, number)
            report.add_quantiles(f"bare_append_{number}", durations, bare=True)
        _model_alone(report, home / "models", embedder)
    return report


def _through_the_door(report: Report, home: Path, callers: int, count: int, tool: str) -> None:
    started = time.perf_counter()
    written = asyncio.run(write_in_turn(home, callers, texts(count, seed=callers), tool))
    seconds = time.perf_counter() - started
    promised = ANSWER_P95.get(tool) if callers == 1 else None
    report.add_quantiles(f"accept_{callers}", [each.accepted_ms for each in written], p95=promised)
    report.add_quantiles(
        f"searchable_{callers}",
        [each.searchable_ms for each in written],
        p95=ALONE_P95 if callers == 1 and tool == WRITE else None,
        p99=EIGHT_P99 if callers == 8 and tool == WRITE else None,
    )
    report.add(f"writes_{callers}_per_s", count / seconds, "1/s")


def _model_alone(report: Report, cache_dir: Path, embedder: str) -> None:
    """One text at a time on one thread: with one caller no memory can be embedded sooner."""
    model = load_embedder(embedder, cache_dir=cache_dir)
    if model is None:
        return
    durations = []
    for text in texts(MODEL_TEXTS, seed=1):
        started = time.perf_counter()
        model.encode([text])
        durations.append((time.perf_counter() - started) * 1000)
    report.add_quantiles("bare_model", durations, bare=True)
