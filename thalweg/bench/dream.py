"""`thalweg bench dream`: how long a dream holds the node in one piece; searches beside it.

The memories are published with their vectors and edges, and some questions are asked again and again, so that a dream
has recalls to work on. A search in the namespace that dreams would wake it: the searches are made in another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np

from streams.errors import Unavailable
from thalweg.bench.examples import SEARCH_ROWS
from thalweg.bench.graph_memory import GraphMemory
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, running_node, scratch_directory, texts
from thalweg.bench.search_tool import fill, wait_linked
from thalweg.bench.watched_node import read_pieces

PIECE, RATIO = Target(20.0), Target(1.5)
QUESTIONS, ASKED = 20, 5
BESIDE = 300
"""Memories of the namespace that is searched meanwhile."""
DREAMS = 20
"""Dreams beside which searches are timed at most."""
LOOKS, LOOK_S = 4_000, 0.1
PIECES = "pieces"


def measure_dream(size: int, count: int, embedder: str) -> Report:
    """Dreams of one namespace of `size` memories, and `count` searches of another. Raises Unavailable."""
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
        for question in _questions(QUESTIONS):
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
        alone, during = await _timed(dreaming, beside, count)
        report.add_quantiles("search_alone", alone)
        report.add_quantiles("search_during", during)
        ratio = float(np.percentile(during, 95) / np.percentile(alone, 95))
        report.add("search_p95_ratio", ratio, "", RATIO)
        report.add("searches_during", len(during), "searches")


def _questions(count: int) -> Sequence[str]:
    return [" ".join(text.split()[:6]) for text in texts(count, seed=11)]


async def _dream(dreaming: GraphMemory) -> None:
    """One dream from beginning to end."""
    before = (await dreaming.call("get_dream_status"))["completed_cycles"]
    await dreaming.call("trigger_dream", force=True)
    for _ in range(LOOKS):
        status = await dreaming.call("get_dream_status")
        if not status["is_dreaming"] and status["completed_cycles"] > before:
            return
        await asyncio.sleep(LOOK_S)
    raise Unavailable(f"The node did not end its dream in {LOOKS * LOOK_S:g} s.")


async def _timed(dreaming: GraphMemory, beside: GraphMemory, count: int) -> tuple[list[float], list[float]]:
    """What searches take in ms without a dream and beside dreams, in turns, at least `count` of each."""
    alone, during = list[float](), list[float]()
    questions = _questions(count)
    for _ in range(DREAMS):
        dream = asyncio.ensure_future(_dream(dreaming))
        first = len(during)
        while not dream.done():
            during.append(await _search(beside, questions[len(during) % count]))
        await dream
        while len(alone) < len(during):
            alone.append(await _search(beside, questions[len(alone) % count]))
        if len(during) >= count or len(during) == first:
            break
    return alone, during


async def _search(memory: GraphMemory, question: str) -> float:
    began = time.perf_counter()
    await memory.find(question, 10)
    return 1000 * (time.perf_counter() - began)
