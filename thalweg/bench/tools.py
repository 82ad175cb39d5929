"""`thalweg bench tools`: what the tools of Context Graph take beside many memories.

The memories are published with their vectors and edges, as for `search_graph`. Some searches come first and some of
their results are judged, so that there is agreement, a history and something to learn from. Each tool is called through
the door, one call after the other. Reported are the clock, and the processor time that the whole node took for a call,
which other load on the machine changes less; what the node does beside it counts too. Once there is a goal the others
wait until the node has read what they keep, as it does with many memories while nothing is stored. Searches and writes
are measured by `thalweg bench search` and `thalweg bench write`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mcp_ingress.toolsets.context_graph.warm import LEAST_MEMORIES
from processors.context_graph.rules.modulators import ADJUSTED
from thalweg.bench.examples import SEARCH_ROWS
from thalweg.bench.graph_memory import GraphMemory
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, processor_s, questions, running_node, scratch_directory, texts
from thalweg.bench.search_tool import fill, wait_linked

LONG, EACH = Target(1000.0), Target(60.0)
QUESTIONS, JUDGED, FOUND = 50, 20, 10
QUIET_S = 125.0
"""A node looks once a minute whether anything was stored; within two looks after the goal it has read."""
FEW = 5
"""Calls of a tool that looks at all memories."""
Arguments = Mapping[str, Any]


def _nothing(number: int, ids: Sequence[str]) -> Arguments:
    return {}


class Calls(NamedTuple):
    """How a tool is called: what a call may take in ms, at most how often, and its arguments.

    `arguments`: of the call's number, and of ids that searches have returned.
    """

    target: Target = EACH
    most: int | None = None
    arguments: Callable[[int, Sequence[str]], Arguments] = _nothing


FINDS_GOAL = "auto_bootstrap_north_star"
PLAN: Mapping[str, Calls] = {
    FINDS_GOAL: Calls(LONG, 1, lambda number, ids: {"confidence_threshold": 0.0}),
    "get_alignment_drift": Calls(LONG, FEW),
    "get_pruning_candidates": Calls(LONG, FEW),
    "discover_sub_goals": Calls(most=FEW),
    "trigger_consolidation": Calls(most=FEW),
    "trigger_drift_correction": Calls(most=FEW),
    "get_autonomous_status": Calls(),
    "get_dream_status": Calls(),
    "abort_dream": Calls(),
    "get_amortized_shortcuts": Calls(),
    "omni_infer": Calls(
        arguments=lambda number, ids: {"source": ids[number % len(ids)], "direction": "abduction"},
    ),
    "get_consciousness_state": Calls(),
    "get_kuramoto_sync": Calls(),
    "get_workspace_status": Calls(),
    "get_ego_state": Calls(),
    "trigger_workspace_broadcast": Calls(
        arguments=lambda number, ids: {"memory_id": ids[number % len(ids)], "force": number % 2 == 0},
    ),
    "adjust_coupling": Calls(arguments=lambda number, ids: {"new_K": number % 10}),
    "get_neuromodulation_state": Calls(),
    "adjust_neuromodulator": Calls(
        arguments=lambda number, ids: {"modulator": ADJUSTED[number % 3], "delta": 0.2 * (-1) ** number},
    ),
    "get_threshold_status": Calls(),
    "get_calibration_metrics": Calls(arguments=lambda number, ids: {"timeframe": "30d"}),
    "trigger_recalibration": Calls(arguments=lambda number, ids: {"level": 1 + number % 4}),
    "get_steering_feedback": Calls(),
}
"""In this order: what comes later has the goal that the first one finds."""


def measure_tools(sizes: Sequence[int], count: int, embedder: str) -> Report:
    """For each size a store of as many memories, and up to `count` calls of each tool of PLAN. Raises Unavailable."""
    report = Report("tools", {"sizes": list(sizes), "n": count, "embedder": embedder})
    for size in sizes:
        with scratch_directory() as directory:
            home = directory / "home"
            fill(report, home, SEARCH_ROWS["search_graph"], texts(size), embedder)
            with running_node(home, embedder=embedder, dream_when_idle="false", observe_drift="false") as process:
                wait_linked(home)
                asyncio.run(_call_each(report, home, size, count, process.pid))
    return report


async def _call_each(report: Report, home: Path, size: int, count: int, pid: int) -> None:
    with closing(await SocketClient.open(home)) as client:
        await client.greet()
        memory = GraphMemory(client)
        ids = await _search(memory)
        for tool, plan in PLAN.items():
            passed, spent = list[float](), list[float]()
            for number in range(min(count, plan.most or count)):
                before, began = processor_s(pid), time.perf_counter()
                await memory.call(tool, **plan.arguments(number, ids))
                passed.append(1000 * (time.perf_counter() - began))
                if before is not None and (after := processor_s(pid)) is not None:
                    spent.append(1000 * (after - before))
            for kind, taken, target in (("wall", passed, None), ("cpu", spent, plan.target)):
                if taken:
                    report.add(f"{tool}_{size}_{kind}_p50", float(np.percentile(taken, 50)), "ms")
                    report.add(f"{tool}_{size}_{kind}_p99", float(np.percentile(taken, 99)), "ms", target)
            if tool == FINDS_GOAL and size >= LEAST_MEMORIES:
                await asyncio.sleep(QUIET_S)


async def _search(memory: GraphMemory) -> list[str]:
    """Ask, and judge some of what is answered; the ids that were found."""
    found: list[str] = []
    for number, question in enumerate(questions(QUESTIONS)):
        answer = await memory.call("search_graph", query=question, topK=FOUND)
        ids = [row["fingerprintId"] for row in answer["results"]]
        found += ids
        if number < JUDGED and ids:
            await memory.call(
                "update_synergy_matrix",
                query_vector_id=answer["query_vector_id"],
                result_vector_id=ids[0],
                feedback="relevant" if number % 3 else "not_relevant",
            )
    return list(dict.fromkeys(found))
