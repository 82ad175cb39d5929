"""What the tools of goals and drift keep, read while nothing is stored, so that no call waits for it."""

from __future__ import annotations

import functools
from contextlib import suppress
from dataclasses import dataclass

import duckdb
import numpy as np

from mcp_ingress.services import Services
from mcp_ingress.toolsets.context_graph.reader import reader_for
from processors.context_graph.read.candidates import Background, Kernels, read_candidates
from processors.context_graph.read.corrections import ProbeQueries, probes
from processors.context_graph.read.drift import DriftCache, DriftReader
from processors.context_graph.read.goals import Purposes
from processors.context_graph.rules.drift_series import TIMEFRAMES
from processors.context_graph.rules.goals import NORTH_STAR
from storage.statements import execute
from streams.errors import EmbedderUnavailable

LEAST_MEMORIES = 1_000
"""A namespace with fewer is read soon enough by the call that needs it."""
MOST_NAMESPACES = 4
"""Of more the records would forget what the first ones have."""
SHORTEST = "24h"


@dataclass
class QuietContents:
    """What the indexes held at the last look, and at the last one that found them unchanged; None before."""

    seen: int | None = None
    read: int | None = None


async def warm_goals(services: Services) -> None:
    """Read what goals and corrections of large namespaces are computed from. Raises Unavailable.

    That is the candidates for goals, the baseline of drift, and the trial searches of a correction. Nothing is read
    where the indexes have changed since the last look: what comes next would undo it.
    """
    quiet, contents = services.part(QuietContents), services.indexes.records.contents
    is_quiet, quiet.seen = quiet.seen == contents, contents
    if not is_quiet or quiet.read == contents or services.embedder is None:
        return
    quiet.read = contents
    if not (namespaces := await services.reader.run(_large)):
        return
    with suppress(EmbedderUnavailable):
        unrelated = await services.part(Background).rows(services.embedder)
        for namespace in namespaces:
            await services.reader.run(functools.partial(_read, services, namespace, unrelated))


def _large(cursor: duckdb.DuckDBPyConnection) -> list[str]:
    """Namespaces with a goal and many memories, at most MOST_NAMESPACES of those with the most."""
    rows = execute(
        cursor,
        "SELECT m.namespace FROM context_memories m SEMI JOIN context_goals g ON g.namespace = m.namespace "
        "AND g.level = ? GROUP BY ALL HAVING count(*) >= ? ORDER BY count(*) DESC LIMIT ?",
        [NORTH_STAR, LEAST_MEMORIES, MOST_NAMESPACES],
    ).fetchall()
    return [namespace for (namespace,) in rows]


def _read(services: Services, namespace: str, unrelated: np.ndarray, cursor: duckdb.DuckDBPyConnection) -> None:
    purposes, reader = services.part(Purposes), reader_for(services, namespace, cursor)
    goal = purposes.north_star(cursor, namespace)
    if goal is None:
        return
    read_candidates(reader, services.part(Kernels), unrelated)
    drift = DriftReader(reader, purposes, services.part(DriftCache), goal)
    drift.observe(TIMEFRAMES[SHORTEST], services.clock.now())
    probes(drift, services.part(ProbeQueries).encoded(services.embedder))
