"""`thalweg bench fairness`: how long calm clients wait alone, and beside a client that floods.

Both in one run, in turns, so that the figure that matters is a ratio. The calm ones write and search at a steady pace;
the node has its default limits.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mcp_ingress.limits import RATE
from streams.errors import Refused
from thalweg.bench.examples import ROWS_BEFORE_WRITE, SEARCH, WRITE
from thalweg.bench.flood import FLOODS
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, running_node, scratch_directory, texts
from thalweg.bench.search_tool import fill

CLIENTS = 3
PACE_S = 0.05
ROUNDS = 4
STORED_ROWS = 2000
SETTLE_S = 0.5
RATIO = Target(1.5)
UNREFUSED = Target(1.0, at_least=True)


@dataclass
class Waits:
    """What the calm clients waited, in ms, by tool; and how many of their calls were refused."""

    by_tool: dict[str, list[float]] = field(default_factory=lambda: {WRITE: [], SEARCH: []})
    refused: int = 0

    @property
    def calls(self) -> int:
        return sum(len(waits) for waits in self.by_tool.values())

    def p95(self, tool: str) -> float:
        return float(np.percentile(self.by_tool[tool], 95))


def measure_fairness(kinds: Sequence[str], seconds: float, *, embedder: str) -> Report:
    """For each kind of flood `seconds` of calm and `seconds` beside the flood, in ROUNDS turns."""
    if unknown := sorted(set(kinds) - set(FLOODS)):
        raise Refused(f"There is no flood {unknown[0]!r}; there are {', '.join(FLOODS)}.")
    report = Report(
        "fairness",
        {"floods": list(kinds), "seconds": seconds, "clients": CLIENTS, "rate_limit": RATE, "embedder": embedder},
    )
    with scratch_directory() as directory:
        home = directory / "home"
        fill(report, home, ROWS_BEFORE_WRITE[WRITE], texts(STORED_ROWS, seed=9), embedder)
        with running_node(home, embedder=embedder, rate_limit=RATE):
            asyncio.run(_calm(home, seconds / ROUNDS, Waits(), 0))
            for number, kind in enumerate(kinds, start=1):
                _measure(report, home, kind, seconds / ROUNDS, number)
    return report


def _measure(report: Report, home: Path, kind: str, seconds: float, number: int) -> None:
    alone, beside, answered, flooded_s = Waits(), Waits(), 0, 0.0
    for turn in range(ROUNDS):
        seed = 1000 * number + 10 * turn
        asyncio.run(_calm(home, seconds, alone, seed))
        with flooding(home, kind) as flood:
            time.sleep(SETTLE_S)
            asyncio.run(_calm(home, seconds, beside, seed + 5))
        answered, flooded_s = answered + flood.answers, flooded_s + flood.seconds
        time.sleep(SETTLE_S)
    for tool in (WRITE, SEARCH):
        report.add_quantiles(f"{kind}_{tool}_alone", alone.by_tool[tool])
        report.add_quantiles(f"{kind}_{tool}_beside", beside.by_tool[tool])
        report.add(f"{kind}_{tool}_p95_ratio", beside.p95(tool) / alone.p95(tool), "", RATIO)
    report.add(f"{kind}_unrefused", 1 - beside.refused / (beside.calls + beside.refused), "", UNREFUSED)
    report.add(f"{kind}_flood_answered_per_s", answered / flooded_s, "/s")


@dataclass
class Flooding:
    """How long a flood lasted and how many answers it got."""

    answers: int = 0
    seconds: float = 0.0


@contextmanager
def flooding(home: Path, kind: str) -> Iterator[Flooding]:
    """One flooding client as a process while the block runs."""
    command = [sys.executable, "-m", "thalweg.bench.flood", str(home), kind]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    flood, started = Flooding(), time.perf_counter()
    try:
        yield flood
    finally:
        output, _ = process.communicate(timeout=30)
        flood.answers, flood.seconds = int(output or 0), time.perf_counter() - started


async def _calm(home: Path, seconds: float, waits: Waits, seed: int) -> None:
    """All calm clients for a while."""
    connections = [await SocketClient.open(home) for _ in range(CLIENTS)]
    try:
        await asyncio.gather(*(_client(each, seconds, waits, seed + number) for number, each in enumerate(connections)))
    finally:
        for connection in connections:
            connection.close()


async def _client(connection: SocketClient, seconds: float, waits: Waits, seed: int) -> None:
    """A write and a search in turn, a pause between them."""
    await connection.greet()
    words = iter(texts(int(seconds / PACE_S) + 1, seed=seed))
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        text = next(words)
        for tool, arguments in (
            (WRITE, {"content": text, "category": "observation"}),
            (SEARCH, {"query": " ".join(text.split()[:6])}),
        ):
            await asyncio.sleep(PACE_S)
            await _timed(connection, tool, arguments, waits)


async def _timed(connection: SocketClient, tool: str, arguments: dict[str, Any], waits: Waits) -> None:
    started = time.perf_counter()
    answer = await connection.answer("tools/call", {"name": tool, "arguments": arguments})
    if answer["result"].get("isError"):
        waits.refused += 1
    else:
        waits.by_tool[tool].append((time.perf_counter() - started) * 1000)
