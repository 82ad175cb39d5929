"""A reader's backlog: the records that it lacks, and the age of the oldest of them.

No record is read for it: the ends of the log, observed once a second, tell when each record appeared.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streams.positions import Partition

LATE_S = 2.0
"""A younger backlog is not reported: its records are on their way."""
MAX_OBSERVATIONS = 512
"""Beyond this number of a partition's observations the older ones are thinned out."""
PRECISION = 0.05
"""An age is exact to one observation, or to this share of it."""


class Backlog(NamedTuple):
    """The number of records that a reader lacks, and the age of the oldest in seconds, to about a second."""

    records: int = 0
    seconds: float = 0.0

    def flag(self) -> dict[str, Any]:
        """The field of an answer, `{"behind": {"records": n, "seconds": s}}`; empty while nothing is late."""
        if not self.records or self.seconds < LATE_S:
            return {}
        return {"behind": {"records": self.records, "seconds": round(self.seconds, 1)}}


class LogEnds:
    """The ends of the log over time. `observe` them once a second; used from one thread."""

    def __init__(self) -> None:
        self._observations: dict[Partition, tuple[list[int], list[float]]] = {}
        """By partition its ends, rising, and the time of the first observation of each."""

    def observe(self, ends: Mapping[Partition, int], now: float) -> None:
        """Store the ends of the partitions. `now`: monotonic seconds."""
        for at, end in ends.items():
            known, times = self._observations.setdefault(at, ([], []))
            if known and end < known[-1]:  # another log
                known.clear()
                times.clear()
            if not known or end > known[-1]:
                known.append(end)
                times.append(now)
            if len(known) > MAX_OBSERVATIONS:
                self._observations[at] = _thinned(known, times, now)

    def backlog(
        self,
        reached: Callable[[Partition], int],
        now: float,
        *,
        topic: str | None = None,
        age_at_start: Callable[[Partition], float | None] = lambda at: None,
    ) -> Backlog:
        """The backlog of a reader that is at the next offset `reached` of each partition (of this topic).

        `age_at_start`: seconds since the oldest record of a partition was written, for a backlog that was there at the
        first observation; None counts from that observation.
        """
        records, seconds = 0, 0.0
        for at, (ends, times) in self._observations.items():
            offset = reached(at)
            if ends[-1] > offset and topic in (None, at.topic):
                records += ends[-1] - offset
                first = bisect_right(ends, offset)
                written = age_at_start(at) if first == 0 else None
                seconds = max(seconds, now - times[first], written or 0.0)
        return Backlog(records, seconds)


def _thinned(ends: list[int], times: list[float], now: float) -> tuple[list[int], list[float]]:
    """The first observation, the last, and those between that are far enough apart for their age."""
    kept = [len(ends) - 1]
    for each in range(len(ends) - 2, 0, -1):
        later = times[kept[-1]]
        if later - times[each] >= PRECISION * (now - later):
            kept.append(each)
    kept.append(0)
    kept.reverse()
    return [ends[each] for each in kept], [times[each] for each in kept]
