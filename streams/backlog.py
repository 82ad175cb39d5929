"""How far a reader of the log is behind its end: the records that it lacks, and the age of the oldest of them.

Nothing is read for it: whoever looks at the ends of the log once a second knows when each record was there first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from streams.positions import Partition

LATE_S = 2.0
"""What lies on the log for less is on its way: nobody needs to be told of it."""
KEPT = 512
"""Looks that are remembered of a partition."""
PRECISION = 0.05
"""Beyond that many the older ones are thinned out: an age is exact to a look, or to this share of it."""


class Backlog(NamedTuple):
    """What a reader lacks: the number of records, and the age of the oldest in seconds, to about a second."""

    records: int = 0
    seconds: float = 0.0

    def flag(self) -> dict[str, Any]:
        """What an answer says of it: `{"behind": {"records": n, "seconds": s}}`, nothing while nothing is late."""
        if not self.records or self.seconds < LATE_S:
            return {}
        return {"behind": {"records": self.records, "seconds": round(self.seconds, 1)}}


class LogEnds:
    """The ends of the log over time. `observe` them once a second; used from one thread."""

    def __init__(self) -> None:
        self._looks: dict[Partition, tuple[list[int], list[float]]] = {}
        """By partition its ends, rising, and when each was seen first."""

    def observe(self, ends: Mapping[Partition, int], now: float) -> None:
        """Note where the partitions end. `now`: monotonic seconds."""
        for at, end in ends.items():
            known, times = self._looks.setdefault(at, ([], []))
            if known and end < known[-1]:  # another log
                known.clear()
                times.clear()
            if not known or end > known[-1]:
                known.append(end)
                times.append(now)
            if len(known) > KEPT:
                self._looks[at] = _thinned(known, times, now)

    def backlog(
        self,
        reached: Callable[[Partition], int],
        now: float,
        *,
        topic: str | None = None,
        age_at_start: Callable[[Partition], float | None] = lambda at: None,
    ) -> Backlog:
        """What a reader lacks that has come to the next offset `reached` of each partition (of this topic).

        `age_at_start`: of a partition whose backlog was there at the first look, the seconds since its oldest record was
        written, where that is known; else they count from that look.
        """
        records, seconds = 0, 0.0
        for at, (ends, times) in self._looks.items():
            offset = reached(at)
            if ends[-1] > offset and topic in (None, at.topic):
                records += ends[-1] - offset
                first = bisect_right(ends, offset)
                written = age_at_start(at) if first == 0 else None
                seconds = max(seconds, now - times[first], written or 0.0)
        return Backlog(records, seconds)


def _thinned(ends: list[int], times: list[float], now: float) -> tuple[list[int], list[float]]:
    """The first look, the last, and of those between the ones that are far enough apart for their age."""
    kept = [len(ends) - 1]
    for look in range(len(ends) - 2, 0, -1):
        later = times[kept[-1]]
        if later - times[look] >= PRECISION * (now - later):
            kept.append(look)
    kept.append(0)
    kept.reverse()
    return [ends[look] for look in kept], [times[look] for look in kept]
