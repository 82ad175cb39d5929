"""Finds what can be consolidated: the groups of memories that a merge would make one, ready for its event."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from processors.context_graph.read.duplicates import find_duplicates, read_living
from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import Purposes, purpose_of, read_north_star
from processors.context_graph.read.teleology import purpose_vectors
from processors.context_graph.rules.consolidation import Pair, event_group, fits, fitting, grouped, say_the_same
from processors.context_graph.rules.views.fingerprint import Fingerprint
from streams.errors import Refused

NO_NORTH_STAR = "no_north_star"


def find_groups(
    reader: FingerprintReader,
    purposes: Purposes,
    strategy: str,
    most: int,
    least: float,
    *,
    until: float,
    largest: int,
    most_groups: int | None = None,
) -> dict[str, Any]:
    """The findings of a `context.memories.merged`, of the `most` memories that were stored last.

    `until`: monotonic time at which it ends with what it has; `largest`: bytes that its groups may take.
    `is_partial`: there is more than that. Raises Refused with reason `no_north_star` for `semantic` without a goal.
    """
    goal = read_north_star(reader.cursor, reader.namespace)
    purpose = None if goal is None else purpose_of(reader, purposes, goal)
    if strategy == "semantic" and purpose is None:
        raise Refused("No goal is known that memories could be near to.", reason=NO_NORTH_STAR)
    memories = read_living(reader.cursor, reader.namespace, most)
    chosen = functools.partial(_fitting, reader, purpose, strategy)
    found = find_duplicates(reader.indexes, memories, least, chosen, until)
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
    reader: FingerprintReader, purpose: Fingerprint | None, strategy: str, pairs: Sequence[Pair]
) -> list[Pair]:
    """Those of the pairs that the strategy and the goal let become one."""
    alignments = None
    if purpose is not None:
        ids = list({memory.memory_id: None for pair in pairs for memory in (pair.first, pair.second)})
        stored = [one for one in reader.stored(ids) if one is not None]
        means = np.nanmean(purpose_vectors(purpose, stored), axis=1).tolist()
        alignments = {str(one.memory_id): mean for one, mean in zip(stored, means, strict=True)}
    return [pair for pair in pairs if fits(strategy, pair.first, pair.second, alignments)]
