"""`thalweg bench memory`: what a node weighs while one caller and eight in turn call all tools.

The callers pause between calls, as agents do: what is stored grows slowly, so that a node that grows faster than its
store is seen.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mcp_ingress.inventory import find_tools
from mcp_ingress.tool import Tool
from thalweg.bench.caller import Caller
from thalweg.bench.examples import EXEMPT_TOOLS, ROWS_BEFORE_WRITE, WRITE
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import anonymous_mb, resident_mb, running_node, scratch_directory, texts
from thalweg.bench.search_tool import fill

RESIDENT = Target(600.0)
GROWTH = Target(1.05)
CALLERS = (1, 8)
PACE_S = 0.25
SAMPLE_S = 1.0
TURNS = 10
"""How often one caller and eight take turns."""
FILLED, CALLED = 9, 10
"""Seeds of the texts: of the filled store, of the calls."""


@dataclass
class Samples:
    """Resident and anonymous memory in MB, and how many calls were made and accepted."""

    resident: list[float] = field(default_factory=list)
    anonymous: list[float] = field(default_factory=list)
    calls: int = 0
    accepted: int = 0

    @property
    def growth(self) -> float:
        """The last quarter's median over the third's: 1 where the second half is flat."""
        quarter = max(1, len(self.resident) // 4)
        third, last = self.resident[-2 * quarter : -quarter], self.resident[-quarter:]
        return float(np.median(last) / np.median(third or last))


def measure_memory(minutes: float, size: int, *, embedder: str) -> Report:
    """Sample a node with `size` memories while every tool is called for so many minutes."""
    settings = {"minutes": minutes, "size": size, "callers": list(CALLERS), "pace_s": PACE_S, "embedder": embedder}
    report, samples = Report("memory", settings), Samples()
    with scratch_directory() as directory:
        home = directory / "home"
        fill(report, home, ROWS_BEFORE_WRITE[WRITE], texts(size, seed=FILLED), embedder)
        with running_node(home, embedder=embedder) as process:
            report.add("resident_before_mb", resident_mb(process.pid), "MB")
            asyncio.run(_call_in_turns(home, process.pid, 60 * minutes, samples))
    half = len(samples.resident) // 2
    first, second = samples.resident[:half] or samples.resident, samples.resident[half:]
    report.add("resident_first_half_mb", float(np.median(first)), "MB")
    report.add("resident_second_half_mb", float(np.median(second)), "MB")
    report.add("resident_largest_mb", max(samples.resident), "MB", RESIDENT)
    report.add("growth_second_half", samples.growth, "ratio", GROWTH)
    if samples.anonymous:
        report.add("anonymous_largest_mb", max(samples.anonymous), "MB")
    report.add("calls", samples.calls, "")
    report.add("calls_accepted", samples.accepted / samples.calls, "ratio")
    return report


async def _call_in_turns(home: Path, pid: int, seconds: float, samples: Samples) -> None:
    tools = [tool for tool in find_tools() if tool.name not in EXEMPT_TOOLS]
    texts_to_use = itertools.chain.from_iterable(texts(1000, seed=seed) for seed in itertools.count(CALLED))
    sampling = asyncio.create_task(_sample(pid, samples))
    try:
        for callers in CALLERS * TURNS:
            ends = time.perf_counter() + seconds / (len(CALLERS) * TURNS)
            await asyncio.gather(
                *(_caller(home, tools, number, texts_to_use, ends, samples) for number in range(callers))
            )
    finally:
        sampling.cancel()


async def _caller(
    home: Path, tools: Sequence[Tool], number: int, entries: Iterator[str], ends: float, samples: Samples
) -> None:
    """Call one tool after the other, each caller from another one on."""
    caller = await Caller.connect(home, tools[0])
    try:
        for tool in itertools.islice(itertools.cycle(tools), number * len(tools) // max(CALLERS), None):
            if time.perf_counter() >= ends:
                return
            is_accepted = await caller.is_accepted(tool, next(entries))
            samples.calls += 1
            samples.accepted += is_accepted
            await asyncio.sleep(PACE_S)
    finally:
        caller.close()


async def _sample(pid: int, samples: Samples) -> None:
    while True:
        samples.resident.append(resident_mb(pid))
        if (own := anonymous_mb(pid)) is not None:
            samples.anonymous.append(own)
        await asyncio.sleep(SAMPLE_S)
