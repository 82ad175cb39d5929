"""Finds what can be consolidated: groups of memories that a merge would make one."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from processors.context_graph.read.duplicates import find_duplicates, read_living, read_near
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goal_alignments import GoalAlignments
from processors.context_graph.read.goals import Purposes, read_north_star
from processors.context_graph.rules.consolidation import (
    SEMANTIC,
    Pair,
    event_group,
    fits,
    fitting,
    grouped,
    say_the_same,
)
from processors.context_graph.rules.goals import Goal
from streams.errors import Refused

NO_NORTH_STAR = "no_north_star"


def find_groups(
    reader: FingerprintReader,
    purposes: Purposes,
    alignments: GoalAlignments,
    strategy: str,
    most: int,
    least: float,
    *,
    is_over: Callable[[], bool],
    largest: int,
    most_groups: int | None = None,
    with_near: bool = False,
) -> dict[str, Any]:
    """The findings of a `context.memories.merged`, of the `most` memories that were stored last.

    `with_near`: and of those near to them, however old. `is_over`: whether it is to end with what it has;
    `largest`: bytes that its groups may take.
    `is_partial`: there is more than that. Raises Refused with reason `no_north_star` for `semantic` without a goal.
    """
    goal = read_north_star(reader.cursor, reader.namespace)
    if strategy == SEMANTIC and goal is None:
        raise Refused("No goal is known that memories could be near to.", reason=NO_NORTH_STAR)
    memories = read_living(reader.cursor, reader.namespace, most)
    if with_near:
        memories += read_near(reader.cursor, reader.indexes, reader.namespace, memories, least, is_over)
    chosen = functools.partial(_fitting, reader, purposes, alignments, goal, strategy)
    found = find_duplicates(reader.indexes, memories, least, chosen, is_over)
    groups = grouped(found.pairs, functools.partial(say_the_same, ordinary=found.ordinary))
    made = [event_group(reader.namespace, group) for group in groups]
    kept = fitting((group for group in made[:most_groups] if group is not None), largest)
    return {
        "groups": kept,
        "strategy": strategy,
        "similarity_threshold": least,
        "processed": found.compared,
        "candidates": found.near,
        "is_partial": not found.is_complete or len(kept) < len(groups),
    }


def _fitting(
    reader: FingerprintReader,
    purposes: Purposes,
    alignments: GoalAlignments,
    goal: Goal | None,
    strategy: str,
    pairs: Sequence[Pair],
) -> list[Pair]:
    """Those of the pairs that the strategy and the goal let become one."""
    known = None
    if goal is not None:
        ids = list({memory.memory_id: None for pair in pairs for memory in (pair.first, pair.second)})
        known = alignments.of(reader, purposes, goal, ids, math.inf)
    return [pair for pair in pairs if fits(strategy, pair.first, pair.second, known)]
