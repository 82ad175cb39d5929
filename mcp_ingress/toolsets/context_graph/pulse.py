"""The pulse of Context Graph: what its memories have taught of late, as each answer tells it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import duckdb

from mcp_ingress.services import Services
from mcp_ingress.toolset import Pulse
from processors.context_graph.rules.johari import ACTIONS
from processors.context_graph.rules.learning import Means
from storage.statements import dicts, execute
from streams.positions import Partition
from streams.topics import MEMORY

UTL = "context_utl"


@dataclass
class KnownMeans:
    """The means of namespaces whose row the writer does not have in memory, as of a place on the log."""

    means: dict[str, tuple[tuple[int, ...], Means]] = field(default_factory=dict)


async def read_means(services: Services, namespace: str) -> Means:
    """What a namespace has learned: from memory, or from the store while nothing of it is in memory."""
    row = services.recent(UTL, (namespace,))
    if row is not None:
        return Means.of(row)
    if not services.may_hold(UTL, (namespace,)):
        return Means()
    partitions = range(services.applied.partitions[MEMORY.name])
    place = tuple(services.applied.next_offset(Partition(MEMORY.name, each)) for each in partitions)
    known = services.part(KnownMeans).means
    if known.get(namespace, (None,))[0] != place:
        known[namespace] = place, await services.reader.run(lambda cursor: _stored(cursor, namespace))
    return known[namespace][1]


def _stored(cursor: duckdb.DuckDBPyConnection, namespace: str) -> Means:
    found = dicts(execute(cursor, f"SELECT * FROM {UTL} WHERE namespace = ?", [namespace]))
    return Means.of(found[0] if found else None)


def beat(means: Means) -> dict[str, Any]:
    """The five fields of the pulse."""
    return {
        "entropy": means.entropy,
        "coherence": means.coherence,
        "learning_score": means.learning_score,
        "quadrant": means.quadrant,
        "suggested_action": ACTIONS[means.quadrant],
    }


async def _read(services: Services, namespace: str) -> dict[str, Any]:
    return beat(await read_means(services, namespace))


PULSE = Pulse("cognitive_pulse", _read)
