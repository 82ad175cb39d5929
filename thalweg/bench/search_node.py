"""The second half of `thalweg bench search`: a node rebuilds the indexes of the same store.

The node is a process of its own; the index files are deleted before it starts.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, anonymous_mb, questions, resident_mb, running_node

REBUILD = Target(60.0)
RESIDENT = Target(800.0)
MEANWHILE = Target(100.0)
READY_S = 3600.0
WARM_UP = 60
"""Searches that are not counted."""


def measure_node(
    report: Report, home: Path, size: int, count: int, target: Target, embedder: str, turns: int = 0
) -> None:
    """Start without indexes. Measure how long until all are whole, searches meanwhile and afterwards, and memory.

    Where there are turns of sessions, `recall` is measured too, which searches them beside the memories.
    """
    started = time.perf_counter()
    with running_node(home, embedder=embedder) as process:
        report.add(f"answers_again_{size}_s", time.perf_counter() - started, "s")
        meanwhile, afterwards = asyncio.run(_ask(report, home, size, count, started))
        report.add_quantiles(f"door_{size}_rebuilding", meanwhile, p95=MEANWHILE)
        report.add_quantiles(f"door_{size}", afterwards, p95=target)
        if turns:
            report.add_quantiles(f"recall_tool_{size}", asyncio.run(_recall(home, count)), p95=target)
        report.add(f"resident_{size}_mb", resident_mb(process.pid), "MB", RESIDENT)
        if (own := anonymous_mb(process.pid)) is not None:
            report.add(f"resident_{size}_anonymous_mb", own, "MB")


async def _ask(report: Report, home: Path, size: int, count: int, started: float) -> tuple[list[float], list[float]]:
    """Milliseconds of searches while the indexes are rebuilt, and of `count` afterwards."""
    calls, control = await SocketClient.open(home), await SocketClient.control(home)
    await calls.greet()
    asked = questions(count)
    meanwhile = [await _search(calls, asked[0])]
    while (await control.ask("status"))["indexes"]["is_rebuilding"] and time.perf_counter() - started < READY_S:
        meanwhile.append(await _search(calls, asked[len(meanwhile) % count]))
    report.add(f"rebuild_{size}_s", time.perf_counter() - started, "s", REBUILD)
    for question in questions(WARM_UP, seed=12):  # a rebuild has left the caches to others, and saves for seconds
        await _search(calls, question)
    afterwards = [await _search(calls, question) for question in questions(count, seed=13)]
    calls.close()
    control.close()
    return meanwhile, afterwards


async def _recall(home: Path, count: int) -> list[float]:
    """Milliseconds of `recall` for `count` questions that nobody has asked before: none is encoded yet."""
    calls = await SocketClient.open(home)
    await calls.greet()
    for question in questions(WARM_UP, seed=14):
        await _search(calls, question, "recall")
    durations = [await _search(calls, question, "recall") for question in questions(count, seed=15)]
    calls.close()
    return durations


async def _search(calls: SocketClient, question: str, tool: str = "journal_query") -> float:
    started = time.perf_counter()
    await calls.request("tools/call", {"name": tool, "arguments": {"query": question}})
    return (time.perf_counter() - started) * 1000
