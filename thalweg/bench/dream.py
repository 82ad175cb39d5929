"""`thalweg bench dream`: how long a dream holds the node in one piece; searches and writes beside it.

The memories are published with their vectors and edges, and some questions are asked again and again, so that a dream
has recalls to work on. A call in the namespace that dreams would wake it: searches and writes are made in another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import numpy as np

from streams.errors import Unavailable
from thalweg.bench.examples import SEARCH_ROWS
from thalweg.bench.graph_memory import GraphMemory
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, questions, running_node, scratch_directory, texts
from thalweg.bench.search_tool import fill, wait_linked
from thalweg.bench.watched_node import read_pieces

PIECE, RATIO = Target(20.0), Target(1.5)
QUESTIONS, ASKED = 20, 5
BESIDE = 300
"""Memories of the namespace that is searched meanwhile."""
DREAMS = 20
"""Dreams beside which searches, and then writes, are timed at most."""
TIMED_S = 120.0
"""So long it takes at most for each of the two: no dream is begun after it."""
MOST_CALLS = 1_000
"""Beside dreams, of each kind: what is stored meanwhile stays few."""
LOOK_S, DREAM_S = 0.1, 360.0
"""How often it is asked whether a dream is over, and for how long: a dream ends after five minutes by itself."""
PIECES = "pieces"


def measure_dream(size: int, count: int, embedder: str) -> Report:
    """Dreams of one namespace of `size` memories, and `count` searches and writes of another. Raises Unavailable."""
    report = Report("dream", {"size": size, "n": count, "embedder": embedder})
    with scratch_directory() as directory:
        home, pieces = directory / "home", directory / PIECES
        fill(report, home, SEARCH_ROWS["search_graph"], texts(size), embedder)
        with running_node(home, embedder=embedder, pieces=pieces, dream_when_idle="false", observe_drift="false"):
            wait_linked(home)
            asyncio.run(_measure(report, home, pieces, count))
    return report


async def _measure(report: Report, home: Path, pieces: Path, count: int) -> None:
    with closing(await SocketClient.open(home)) as client, closing(await SocketClient.open(home)) as other:
        await client.greet()
        await other.request("thalweg/scope", {"namespace": "beside"})
        await other.greet()
        dreaming, beside = GraphMemory(client), GraphMemory(other)
        for text in texts(BESIDE, seed=3):
            await beside.store(text)
        await beside.embedded()
        for question in questions(QUESTIONS):
            for _ in range(ASKED):
                await dreaming.find(question, 10)
        began = time.perf_counter()
        await _dream(dreaming)
        ended = time.perf_counter()
        await asyncio.sleep(ended - began)
        for name, since, until, target in (("dream", began, ended, PIECE), ("calm", ended, time.perf_counter(), None)):
            found = read_pieces(pieces, since, until) or [0.0]
            report.add(f"{name}_longest_piece", max(found), "ms", target)
            report.add(f"{name}_pieces_above_10ms", sum(piece > 10 for piece in found), "pieces")
        report.add("dream_s", ended - began, "s")
        asked, told = questions(count), texts(2 * MOST_CALLS, seed=5)

        async def search(number: int) -> None:
            await beside.find(asked[number % count], 10)

        async def write(number: int) -> None:
            await beside.store(told[number])

        for name, plural, call in (("search", "searches", search), ("write", "writes", write)):
            alone, during = await _timed(dreaming, call, count)
            report.add_quantiles(f"{name}_alone", alone)
            report.add_quantiles(f"{name}_during", during)
            ratio = float(np.percentile(during, 95) / np.percentile(alone, 95))
            report.add(f"{name}_p95_ratio", ratio, "", RATIO)
            report.add(f"{plural}_during", len(during), plural)


async def _dream(dreaming: GraphMemory) -> None:
    """One dream from beginning to end."""
    before = (await dreaming.call("get_dream_status"))["completed_cycles"]
    await dreaming.call("trigger_dream", force=True)
    until = time.monotonic() + DREAM_S
    while time.monotonic() < until:
        status = await dreaming.call("get_dream_status")
        if not status["is_dreaming"] and status["completed_cycles"] > before:
            return
        await asyncio.sleep(LOOK_S)
    raise Unavailable(f"The node did not end its dream in {DREAM_S:g} s.")


async def _timed(
    dreaming: GraphMemory, call: Callable[[int], Awaitable[None]], count: int
) -> tuple[list[float], list[float]]:
    """What calls take in ms without a dream and beside dreams, in turns: `count` of each, in bounded time.

    `call` is given a number of its own each time.
    """
    alone, during = list[float](), list[float]()
    until = time.monotonic() + TIMED_S
    for _ in range(DREAMS):
        dream = asyncio.ensure_future(_dream(dreaming))
        first = len(during)
        while not dream.done() and len(during) < MOST_CALLS:
            during.append(await _took_ms(call(len(during) + len(alone))))
        await dream
        while len(alone) < len(during):
            alone.append(await _took_ms(call(len(during) + len(alone))))
        if len(during) >= min(count, MOST_CALLS) or len(during) == first or time.monotonic() > until:
            break
    return alone, during


async def _took_ms(call: Awaitable[None]) -> float:
    began = time.perf_counter()
    await call
    return 1000 * (time.perf_counter() - began)
