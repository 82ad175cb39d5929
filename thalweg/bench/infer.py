"""`thalweg bench infer`: what an inference over causes costs among many memories.

A third of the edges lie among a twentieth of the memories, so that paths of five edges reach hundreds. What follows
from a memory and what it follows from are asked in turn, of these memories and of all. Reported is the processor's time
of one thread, which other load on the machine changes less than that of the clock.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

import duckdb
import numpy as np

from processors.context_graph.read.inference import (
    edges_ahead,
    edges_behind,
    read_evidence,
    read_importance,
    read_path_memories,
)
from processors.context_graph.rules.inference import abduce, effects
from storage.context_graph.causal_edges import CausalFollower
from storage.database import Database
from storage.migrate import migrate
from streams.ids import document_label
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import scratch_directory

NAMESPACE, ASKED, SHOWN, NAMED_CHARS = "bench", 200, 20, 120
HUBS, AMONG_HUBS = 20, 3
"""One memory of HUBS is a hub, and one edge of AMONG_HUBS joins two of them."""
P99 = Target(60.0)
Result = TypeVar("Result")
_AT = datetime(2026, 1, 5)
_MEMORIES = """
INSERT INTO context_memories (memory_id, label, content, modality, importance, tags, content_hash, times, created_at,
    last_stored_at, created_event_id, namespace, topic, partition, "offset", idx, event_id)
SELECT memory_id, label, 'What happened was written down as ' || memory_id, 'text', 0.5, ['bench'], memory_id, 1,
    $2, $2, memory_id, $1, 'bench', 0, 0, 0, memory_id FROM made"""
_EDGES = """
INSERT INTO context_edges SELECT source_id, target_id, 'causal', weight, 0.9,
    '{"sentence": "It broke because of that.", "marker": "because"}', NULL, false, $2, $2, $1, 'bench', 0, 0, 'edges'
FROM joined"""


def measure_infer(memories: int, edges: int) -> Report:
    """Fill a store, ask it ASKED times among hubs and ASKED times anywhere, and report the times."""
    report = Report("infer", {"memories": memories, "edges": edges})
    chance = random.Random(1)
    with scratch_directory() as directory:
        cursor = Database(directory).cursor()
        migrate(cursor, _AT)
        hubs = max(2, memories // HUBS)
        _fill(cursor, memories, edges, hubs, chance)
        follower = CausalFollower()
        report.add("first_question_cpu", _timed(lambda: follower.view(cursor, NAMESPACE))[1], "ms")
        for name, among, target in (("hubs", hubs, P99), ("any", memories, None)):
            asked = [f"m{chance.randrange(among)}" for _ in range(ASKED)]
            times = [
                _timed(functools.partial(_infer, cursor, follower, one, is_ahead=place % 2 == 0))
                for place, one in enumerate(asked)
            ]
            walked, spent = zip(*times, strict=True)
            found = [_timed(functools.partial(read_path_memories, cursor, NAMESPACE, [one], 0))[1] for one in asked]
            report.add(f"{name}_edges_walked_most", max(walked), "edges")
            report.add(f"{name}_cpu_p50", float(np.percentile(spent, 50)), "ms")
            report.add(f"{name}_cpu_p99", float(np.percentile(spent, 99)), "ms", target)
            report.add(f"{name}_one_memory_cpu_p50", float(np.percentile(found, 50)), "ms", bare=True)
    return report


def _fill(cursor: duckdb.DuckDBPyConnection, memories: int, edges: int, hubs: int, chance: random.Random) -> None:
    names = [f"m{number}" for number in range(memories)]
    made = {"memory_id": np.array(names), "label": np.array([document_label(NAMESPACE, one) for one in names])}
    pairs = dict.fromkeys(
        tuple(chance.sample(range(hubs if number % AMONG_HUBS == 0 else memories), 2)) for number in range(edges)
    )
    ends = [np.array([f"m{pair[side]}" for pair in pairs]) for side in (0, 1)]
    joined = {"source_id": ends[0], "target_id": ends[1], "weight": np.array([chance.uniform(0.5, 1) for _ in pairs])}
    for name, columns, query in (("made", made, _MEMORIES), ("joined", joined, _EDGES)):
        cursor.register(name, columns)
        cursor.execute(query, [NAMESPACE, _AT])
        cursor.unregister(name)


def _infer(cursor: duckdb.DuckDBPyConnection, follower: CausalFollower, memory_id: str, *, is_ahead: bool) -> int:
    """What `omni_infer` reads and computes; how many edges it walked."""
    view = follower.view(cursor, NAMESPACE)
    if is_ahead:
        edges = edges_ahead(view, NAMESPACE, memory_id)
        paths = list(effects(edges, memory_id).values())
    else:
        edges = edges_behind(view, NAMESPACE, memory_id)
        importance = read_importance(cursor, NAMESPACE, {edge.source_id for edge in edges})
        paths = [one.path for one in abduce(edges, memory_id, importance)]
    ids = {one for path in paths[:SHOWN] for one in path.ids}
    read_path_memories(cursor, NAMESPACE, ids, NAMED_CHARS)
    read_evidence(cursor, NAMESPACE, ids)
    return len(edges)


def _timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """What it returns, and the processor's milliseconds that it took."""
    began = time.process_time()
    result = work()
    return result, 1000 * (time.process_time() - began)
