"""`thalweg bench write`: how long a write takes until it is accepted and until it is searchable.

The calls go through the real door. Beside them, in the same run, what the parts can do without thalweg (`bare_spine`):
on a machine that is slow or busy both take longer, and their ratio says what is ours.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from processors.embedding.loader import load_embedder
from processors.embedding.model import Embedder
from streams.errors import Refused
from thalweg.bench import bare_spine
from thalweg.bench.bare_log import appends_ms, memory_record
from thalweg.bench.caller import write_in_turn
from thalweg.bench.examples import ANSWER_P95, WRITE, rows_before_write, write_tool
from thalweg.bench.own_broker import refuse_used
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import running_node, scratch_directory, texts
from thalweg.bench.search_tool import fill

WARM_UP = 20
FILLED = 9
"""Seed of the texts of a filled store: none of them is written again."""
ALONE_P95 = Target(20.0)
EIGHT_P99 = Target(60.0)
MODEL_TEXTS = 50


def measure_write(
    callers: Sequence[int], count: int, *, embedder: str, broker: str, tool: str = WRITE, size: int = 0
) -> Report:
    """Time `count` calls for each number of callers, beside bare appends and the model alone.

    The appended records have the size of the tool's. The store has `size` rows already, made by events.
    """
    settings = {
        "tool": tool,
        "callers": list(callers),
        "n": count,
        "embedder": embedder,
        "broker": broker or "sqlite://",
        "size": size,
    }
    report = Report("write", settings)
    write_tool(tool)
    stored = rows_before_write(tool) if size else None
    if stored and broker:
        raise Refused("`--size` fills the embedded log of the scratch directory; leave `--broker` out.")
    refuse_used(broker)
    with scratch_directory() as directory:
        home = directory / "home"
        if stored is not None:
            fill(report, home, stored, texts(size, seed=FILLED), embedder)
        with running_node(home, embedder=embedder, broker=broker):
            asyncio.run(write_in_turn(home, 1, texts(WARM_UP, seed=0), tool))
            for number in callers:
                _through_the_door(report, home, number, count, tool)
        for number in callers:
            records = [memory_record(text) for text in texts(count, seed=number)]
            durations, _ = appends_ms(broker or f"sqlite://{directory / 'bare.db'}", records, number)
            report.add_quantiles(f"bare_append_{number}", durations, bare=True)
        model = load_embedder(embedder, cache_dir=home / "models")
        if model is not None:
            for number in callers if tool == WRITE else ():  # what other tools do besides has no such sketch
                _beside_the_bare_spine(
                    report, broker or f"sqlite://{directory / 'spine.db'}", directory, model, number, count
                )
            _model_alone(report, model)
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


def _beside_the_bare_spine(
    report: Report, broker: str, directory: Path, model: Embedder, callers: int, count: int
) -> None:
    """Time the same texts through bare log, model, store and vector index, and report the ratio."""
    entries = [*texts(WARM_UP, seed=0), *texts(count, seed=callers)]
    durations = bare_spine.searchable_ms(broker, directory / f"spine{callers}.duckdb", model, entries, callers)[
        WARM_UP:
    ]
    report.add_quantiles(f"bare_spine_{callers}", durations, bare=True)
    for quantile in (50, 95, 99):
        ours, bare = (report.figures[f"{name}_{callers}_p{quantile}_ms"].value for name in ("searchable", "bare_spine"))
        report.add(f"searchable_of_bare_{callers}_p{quantile}", ours / bare, "ratio")


def _model_alone(report: Report, model: Embedder) -> None:
    """One text at a time on one thread: with one caller no memory can be embedded sooner."""
    durations = []
    for text in texts(MODEL_TEXTS, seed=1):
        started = time.perf_counter()
        model.encode([text])
        durations.append((time.perf_counter() - started) * 1000)
    report.add_quantiles("bare_model", durations, bare=True)
