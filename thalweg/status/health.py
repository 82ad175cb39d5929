"""Health: how far each part is, and whether it moves. Red when anything is behind, stuck or dead; never a green guess."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any

from processors.frame.stage import Stage, StageRunner
from storage.disk import low_sentence
from streams.backlog import Backlog, LogEnds
from streams.clock import format_time
from streams.errors import Unavailable
from streams.positions import Partition
from streams.progress import MATERIALISE
from streams.topics import MEMORY
from thalweg.control.dead_letters import count_states
from thalweg.terminal.topics import missing_otlp_topics

if TYPE_CHECKING:
    from thalweg.process.node import Node

RED = ("behind", "stuck")
START_S = 30.0
RECENT_S = 3600.0
"""For so long a producer whose record lay on a wrong partition is a problem of now."""
SOURCES_SHOWN = 10
_MISPLACED = "SELECT source, sum(records) FROM misplaced_records GROUP BY source ORDER BY list_contains(?, source) DESC, 2 DESC, 1 LIMIT ?"


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
        """ok, working (nothing waits for `behind_s`), behind (something does, but the part moves) or stuck (and it did not move either)."""
        if self._lacking.records == 0:
            return "ok"
        if self._lacking.seconds < behind_s:
            return "working"
        return "behind" if now - self._moved_at < behind_s else "stuck"

    def report(self, now: float, behind_s: float) -> dict[str, Any]:
        """For `thalweg status`: `lag` in records, `oldest_s` since the oldest of them was first seen on the log."""
        lag, seconds = self._lacking
        return {"state": self.state(now, behind_s), "applied": self._applied, "lag": lag, "oldest_s": round(seconds, 1)}


def sentence(part: str, seen: Mapping[str, Any]) -> str:
    """What is wrong with a part that is behind or stuck."""
    which = "1 record waits" if seen["lag"] == 1 else f"{seen['lag']} records wait"
    return f"{part} is {seen['state']}: {which}, the oldest for {seen['oldest_s']:.0f} s"


class Health:
    """Looks once a second, so that what waits is seen over time and not at one moment."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._topics: dict[str, Watch] = {}
        self._stages: dict[str, Watch] = {}
        self._since = node.clock.monotonic()
        self.log_ends = LogEnds()
        """What tells how far any reader of the log is behind: the store here, a stage by its marks."""

    async def observe(self) -> None:
        """Compare the ends of the log with what is applied and with what each stage has processed."""
        node, now = self._node, self._node.clock.monotonic()
        with contextlib.suppress(Unavailable):  # `log` is reported as down by `report`
            self.log_ends.observe(await node.log.end_offsets(node.followed), now)
        applied, processed = node.applied.positions(), node.applied.stage_positions()
        for topic in node.followed:
            reached = sum(offset for at, offset in applied.items() if at.topic == topic)
            lacking = self.log_ends.backlog(node.applied.next_offset, now, topic=topic)
            self._topics.setdefault(topic, Watch(now)).observe(now, reached, lacking)
        for stage in self._every_stage():
            name, source = stage.name, MEMORY.name if stage.follows else stage.source.name
            reached = sum(offset for (other, at), offset in processed.items() if (other, at.topic) == (name, source))
            lacking = self.log_ends.backlog(functools.partial(node.applied.next_offset, stage=name), now, topic=source)
            self._stages.setdefault(name, Watch(now)).observe(now, reached, lacking)

    def _every_stage(self) -> list[Stage | type[Stage]]:
        return [*(runner.stage for runner in self._node.runners), *self._node.elsewhere]

    def _causes(self, topics: Mapping[str, dict[str, Any]], stages: Mapping[str, dict[str, Any]]) -> dict[str, str]:
        """By part a sentence, for the causes of what is behind or stuck: the materialiser alone when it is one, because how far the
        stages are is read from what it applies; else the stages that do not wait for another one that is behind."""
        late = {name: seen for name, seen in topics.items() if seen["state"] in RED}
        if late:
            states = {seen["state"] for seen in late.values()}
            together = {
                "state": "behind" if "behind" in states else "stuck",
                "lag": sum(seen["lag"] for seen in late.values()),
                "oldest_s": max(seen["oldest_s"] for seen in late.values()),
            }
            return {MATERIALISE: f"{sentence('the materialiser', together)} on {', '.join(late)}"}
        slow = {
            stage.name: stage.awaits | ({stage.follows} if stage.follows else set())
            for stage in self._every_stage()
            if stages.get(stage.name, {}).get("state") in RED
        }
        elsewhere = {stage.name for stage in self._node.elsewhere}
        causes = {}
        for name in sorted(name for name, awaited in slow.items() if awaited.isdisjoint(slow)):
            waiting = sorted(other for other in slow if name in _upstream(other, slow))
            others = (
                f"; {', '.join(waiting)} {'waits' if len(waiting) == 1 else 'wait'} for what it finds"
                if waiting
                else ""
            )
            causes[name] = (
                sentence(f"stage {name}", stages[name])
                + others
                + ("; another node has to run it" if name in elsewhere else "")
            )
        return causes

    def backlog(self) -> Backlog:
        """What the store lacks of the log as it was seen last, at most a second ago."""
        return self.log_ends.backlog(
            self._node.applied.next_offset, self._node.clock.monotonic(), age_at_start=self._age_at_start
        )

    def _age_at_start(self, at: Partition) -> float | None:
        """The oldest record that is lacking is about as old as the last one that was applied."""
        written_ms = self._node.materialiser.written_ms.get(at, 0)
        return None if written_ms <= 0 else self._node.clock.now().timestamp() - written_ms / 1000

    async def report(self) -> dict[str, Any]:
        """Everything `thalweg status` shows; `status` is green or red, `problems` says why."""
        node, now = self._node, self._node.clock.monotonic()
        await self.observe()
        behind_s = node.settings.behind_s
        topics = {name: watch.report(now, behind_s) for name, watch in sorted(self._topics.items())}
        stages = {name: watch.report(now, behind_s) for name, watch in sorted(self._stages.items())}
        causes = self._causes(topics, stages)
        problems = [*causes.values()]
        for runner in node.runners:
            seen = stages.setdefault(runner.stage.name, {"applied": 0, "lag": 0, "oldest_s": 0.0})
            if self._is_dead(runner, now):
                seen["state"] = "dead"
                problems.append(f"stage {runner.stage.name} is dead: {runner.failure or 'nothing runs it'}")
            elif runner.waiting and runner.stage.name in causes:
                problems.append(f"stage {runner.stage.name} waits: {runner.waiting}")
            elif runner.life == "starting":
                seen["state"] = "starting"
        log = await self._log_state()
        if log != "ok":
            problems.append(log)
        if node.settings.otlp_topics and (absent := missing_otlp_topics(node.followed)):
            problems.append(absent)
        full = low_sentence(node.settings.home)
        if full is not None:
            problems.append(full)
        if not node.gateway.spool.is_empty:
            problems.append("writes are spooled: the log did not take them")
        misplaced = await self._misplaced(now)
        problems += [misplaced_sentence(found) for found in misplaced if found["is_recent"]]
        indexes = node.indexes.state()
        problems += [
            f"the {name} index is {state}"
            for name, state in _index_states(indexes).items()
            if state not in ("ready", "none")
        ]
        spaces = await node.spaces.status()
        if spaces["problem"]:
            problems.append(f"embedding spaces: {spaces['problem']}")
        info = node.embedder.info if node.embedder else None
        return {
            "status": "red" if problems else "green",
            "problems": problems,
            "broker": node.settings.broker_url,
            "role": node.settings.role,
            "http": node.http,
            "home": str(node.settings.home),
            "started_at": format_time(node.started_at),
            "embedder": {"model_id": info.model_id, "dim": info.dim, "trained": info.trained} if info else None,
            "spaces": spaces,
            "topics": topics,
            "stages": {runner.stage.name: stages[runner.stage.name] | _runner_state(runner) for runner in node.runners}
            | {stage.name: stages.get(stage.name, {}) for stage in node.elsewhere},
            "materialiser": vars(node.materialiser.counters),
            "indexes": indexes,
            "dead_letters": await node.reader.run(count_states),
            "misplaced": misplaced,
            "door": node.door.status(),
            "clients": node.socket.clients,
        }

    def _is_dead(self, runner: StageRunner, now: float) -> bool:
        """Nothing runs the stage, or it takes longer to start than any start takes. Without a lag nobody would notice otherwise."""
        if runner.life == "starting":
            return now - self._since > START_S
        return runner.life == "dead" or runner.failure is not None

    async def _log_state(self) -> str:
        try:
            await self._node.log.end_offsets([MEMORY.name])
        except Unavailable as error:
            return f"the log is down: {error.message}"
        return "ok"

    async def _misplaced(self, now: float) -> list[dict[str, Any]]:
        """Sources of records on other partitions than their keys', those of now first, then those of most."""
        recent = [source for source, at in self._node.materialiser.misplaced_at.items() if now - at < RECENT_S]
        rows = await self._node.reader.run(
            lambda cursor: cursor.execute(_MISPLACED, [recent, SOURCES_SHOWN]).fetchall()
        )
        return [{"source": source, "records": int(count), "is_recent": source in recent} for source, count in rows]


def _upstream(stage: str, awaited: Mapping[str, Set[str]]) -> set[str]:
    """All stages that one waits for, directly or by way of others."""
    nearest = awaited.get(stage, set())
    return {*nearest}.union(*(_upstream(other, awaited) for other in nearest))


def misplaced_sentence(found: Mapping[str, Any]) -> str:
    """Whose records lie on other partitions than their keys', and what to do about it."""
    return (
        f"the producer {found['source']} puts records on other partitions than their keys' ({found['records']} so far): they are applied, but "
        "not in order with the others of their namespace. Set its partitioner to Kafka's murmur2: docs/producers.md says how in each language"
    )


def _runner_state(runner: StageRunner) -> dict[str, Any]:
    return {
        "processed": runner.processed,
        "buried": runner.buried,
        "busy_s": round(runner.busy_s, 3),
        "failure": runner.failure,
    }


def _index_states(indexes: dict[str, Any]) -> dict[str, str]:
    return {name: state["state"] for name, state in indexes.items() if isinstance(state, dict) and "state" in state}
