"""What belongs together because searches returned it together: the edges that a dream draws from recalls.

A dream hands over the recalls of its namespace and what edges there are, and publishes the changes as they come back
(`context.edges.changed`): nothing here looks at a clock or at chance.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from processors.context_graph.rules.edges import Edge, EdgeChange


@dataclass(frozen=True, slots=True)
class Recall:
    """What one request of a search returned: a row of `context_recalls` for each memory, best first."""

    query_id: str
    memory_ids: tuple[str, ...]
    similarities: tuple[float, ...]
    at: datetime


def co_recalled(recalls: Iterable[Recall], edges: Iterable[Edge]) -> list[EdgeChange]:
    """The edges between memories that were recalled together: weights are absolute, order is stable.

    `recalls`: of the namespace, in any order, up to the dream's beginning. `edges`: all that there are, of every kind.
    The same recalls and edges give the same changes; an edge that has its weight already is not among them.
    """
    return []
