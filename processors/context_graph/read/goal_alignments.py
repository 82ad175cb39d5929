"""How memories are aligned with a goal, kept in memory: a number each, never stored."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence

from processors.context_graph.read.fingerprints import FingerprintReader
from processors.context_graph.read.goals import Purposes, purpose_of
from processors.context_graph.read.teleology import mean_alignment, purpose_vectors
from processors.context_graph.rules.goals import Goal

BATCH = 64
MOST_GOALS = 16
MOST_MEMORIES = 100_000


class GoalAlignments:
    """By goal and space what is known of memories' alignments. Any number of threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, dict[str, float]] = OrderedDict()
        self._lock = threading.Lock()

    def of(
        self, reader: FingerprintReader, purposes: Purposes, goal: Goal, memory_ids: Sequence[str], until: float
    ) -> dict[str, float]:
        """By id the mean alignment of memories with a goal, -1 to 1, as far as time allows.

        What was computed once is there at once; the rest is a millisecond or so for each memory.
        """
        live = reader.indexes.spaces.live
        towards = purpose_of(reader, purposes, goal)
        if live is None or towards is None:
            return {}
        key = (reader.namespace, reader.spaces, goal.goal_id, tuple(goal.member_ids))
        known = self._of_goal(key)
        missing = [one for one in memory_ids if one not in known]
        for start in range(0, len(missing), BATCH):
            if time.monotonic() > until:
                break
            some = [one for one in reader.stored(missing[start : start + BATCH]) if one is not None]
            whole = [one for one in some if one.vector is not None]
            aligned = purpose_vectors(towards, whole)
            found = {str(one.memory_id): mean_alignment(row) for one, row in zip(whole, aligned, strict=True)}
            with self._lock:
                if len(known) < MOST_MEMORIES:
                    known |= found
            reader.indexes.yield_to_callers()
        return {one: known[one] for one in memory_ids if one in known}

    def _of_goal(self, key: Hashable) -> dict[str, float]:
        with self._lock:
            found = self._known.setdefault(key, {})
            self._known.move_to_end(key)
            while len(self._known) > MOST_GOALS:
                self._known.popitem(last=False)
            return found
