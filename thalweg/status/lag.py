"""How far each topic and stage is behind the log, seen over time, and which part is the cause."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any

from processors.frame.stage import Stage, needed_by
from storage.applied import AppliedPositions
from streams.backlog import Backlog, LogEnds
from streams.clock import Clock
from streams.errors import Unavailable
from streams.log.base import Log
from streams.positions import Partition
from streams.progress import MATERIALISE
from streams.topics import MEMORY

RED = ("behind", "stuck")


class Watch:
    """How far a part is, what it lacks, and when it last moved."""

    def __init__(self, now: float) -> None:
        self._applied = 0
        self._lacking = Backlog()
        self._moved_at = now

    def observe(self, now: float, applied: int, lacking: Backlog) -> None:
        if applied != self._applied:
            self._moved_at = now
        self._applied, self._lacking = applied, lacking

    def state(self, now: float, behind_s: float) -> str:
        """ok, working, behind or stuck.

        working: nothing waits for `behind_s` seconds; behind: something does, but the part moves; stuck: it did not
        move in that time either.
        """
        if self._lacking.records == 0:
            return "ok"
        if self._lacking.seconds < behind_s:
            return "working"
        return "behind" if now - self._moved_at < behind_s else "stuck"

    def report(self, now: float, behind_s: float) -> dict[str, Any]:
        """The lag for `thalweg status`, in records and seconds.

        `oldest_s` counts from the moment at which the oldest of them was first seen on the log.
        """
        lag, seconds = self._lacking
        return {"state": self.state(now, behind_s), "applied": self._applied, "lag": lag, "oldest_s": round(seconds, 1)}


def sentence(part: str, seen: Mapping[str, Any]) -> str:
    """What is wrong with a part that is behind or stuck."""
    which = "1 record waits" if seen["lag"] == 1 else f"{seen['lag']} records wait"
    return f"{part} is {seen['state']}: {which}, the oldest for {seen['oldest_s']:.0f} s"


Reports = Mapping[str, Mapping[str, Any]]
"""By topic or stage what its Watch reports."""


class Lag:
    """Looks once a second, so that what waits is seen over time and not at one moment.

    `followed`: the topics of the store, a list that may grow. `here`: the stages that run in this process, `elsewhere`:
    those that another one has to run. `age_at_start`: as for LogEnds.backlog.
    """

    def __init__(
        self,
        log: Log,
        applied: AppliedPositions,
        clock: Clock,
        followed: Collection[str],
        *,
        here: Sequence[Stage] = (),
        elsewhere: Sequence[type[Stage]] = (),
        age_at_start: Callable[[Partition], float | None] = lambda at: None,
    ) -> None:
        self._log, self._applied, self._clock, self._followed = log, applied, clock, followed
        self._age_at_start = age_at_start
        self._every_stage: list[Stage | type[Stage]] = [*here, *elsewhere]
        self.elsewhere = [stage.name for stage in elsewhere]
        self._topics: dict[str, Watch] = {}
        self._stages: dict[str, Watch] = {}
        self._log_ends = LogEnds()
        """What tells how far any reader of the log is behind: the store here, a stage by its marks."""

    async def observe(self) -> None:
        """Compare the ends of the log with what is applied and with what each stage has processed."""
        now = self._clock.monotonic()
        with contextlib.suppress(Unavailable):  # `status` says itself that the log is down
            self._log_ends.observe(await self._log.end_offsets(self._followed), now)
        applied, processed = self._applied.positions(), self._applied.stage_positions()
        for topic in self._followed:
            reached = sum(offset for at, offset in applied.items() if at.topic == topic)
            lacking = self._log_ends.backlog(self._applied.next_offset, now, topic=topic)
            self._topics.setdefault(topic, Watch(now)).observe(now, reached, lacking)
        for stage in self._every_stage:
            name, source = stage.name, MEMORY.name if stage.follows else stage.source.name
            reached = sum(offset for (other, at), offset in processed.items() if (other, at.topic) == (name, source))
            next_offset = functools.partial(self._applied.next_offset, stage=name)
            lacking = self._log_ends.backlog(next_offset, now, topic=source)
            self._stages.setdefault(name, Watch(now)).observe(now, reached, lacking)

    def topics(self, behind_s: float) -> dict[str, dict[str, Any]]:
        """By topic what its Watch reports, as of the last look."""
        return _reports(self._topics, self._clock.monotonic(), behind_s)

    def stages(self, behind_s: float) -> dict[str, dict[str, Any]]:
        """By stage what its Watch reports, as of the last look."""
        return _reports(self._stages, self._clock.monotonic(), behind_s)

    def backlog(self) -> Backlog:
        """What the store lacks of the log as of the last look, at most a second ago."""
        return self._log_ends.backlog(
            self._applied.next_offset, self._clock.monotonic(), age_at_start=self._age_at_start
        )

    def causes(self, topics: Reports, stages: Reports) -> dict[str, str]:
        """By part a sentence, for the causes of what is behind or stuck.

        The materialiser alone when it is one, because how far the stages are is read from what it applies; else the
        stages that do not wait for another one that is behind.
        """
        slow_topics = {name: seen for name, seen in topics.items() if seen["state"] in RED}
        if slow_topics:
            return {MATERIALISE: _materialiser_sentence(slow_topics)}
        slow = {
            stage.name: needed_by(stage)
            for stage in self._every_stage
            if stages.get(stage.name, {}).get("state") in RED
        }
        causes = {}
        for name in sorted(name for name, awaited in slow.items() if awaited.isdisjoint(slow)):
            waiting = sorted(other for other in slow if name in _upstream(other, slow))
            verb = "waits" if len(waiting) == 1 else "wait"
            others = f"; {', '.join(waiting)} {verb} for what it finds" if waiting else ""
            place = "; another node has to run it" if name in self.elsewhere else ""
            causes[name] = sentence(f"stage {name}", stages[name]) + others + place
        return causes


def _reports(watches: Mapping[str, Watch], now: float, behind_s: float) -> dict[str, dict[str, Any]]:
    return {name: watch.report(now, behind_s) for name, watch in sorted(watches.items())}


def _materialiser_sentence(slow_topics: Reports) -> str:
    states = {seen["state"] for seen in slow_topics.values()}
    together = {
        "state": "behind" if "behind" in states else "stuck",
        "lag": sum(seen["lag"] for seen in slow_topics.values()),
        "oldest_s": max(seen["oldest_s"] for seen in slow_topics.values()),
    }
    return f"{sentence('the materialiser', together)} on {', '.join(slow_topics)}"


def _upstream(stage: str, awaited: Mapping[str, Set[str]]) -> set[str]:
    """All stages that one waits for, directly or by way of others."""
    nearest = awaited.get(stage, set())
    return {*nearest}.union(*(_upstream(other, awaited) for other in nearest))
