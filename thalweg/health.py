"""Health: how far each part is, and whether it moves. Red when anything is behind, stuck or dead; never a green guess."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from processors.stages.stage import Stage, StageRunner
from storage.disk import low_sentence
from streams.backlog import Backlog, LogEnds
from streams.clock import format_time
from streams.errors import Unavailable
from streams.positions import Partition
from streams.topics import MEMORY

if TYPE_CHECKING:
    from thalweg.node import Node

BEHIND_S = 5.0
START_S = 30.0


@dataclass
class Watch:
    """When a part was last seen caught up, and when it last moved."""

    caught_up_at: float
    moved_at: float
    reached: int = 0
    lag: int = 0

    def observe(self, now: float, reached: int, lag: int) -> None:
        if reached != self.reached:
            self.moved_at = now
        if lag == 0:
            self.caught_up_at = now
        self.reached, self.lag = reached, lag

    def state(self, now: float) -> str:
        """ok, working (a backlog younger than BEHIND_S), behind (older, but moving) or stuck (not moving)."""
        if self.lag == 0:
            return "ok"
        if now - self.caught_up_at < BEHIND_S:
            return "working"
        return "behind" if now - self.moved_at < BEHIND_S else "stuck"


class Health:
    """Looks once a second, so that `behind` and `stuck` are seen over time and not at one moment."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._watches: dict[str, Watch] = {}
        self._since = node.clock.monotonic()
        self.log_ends = LogEnds()
        """What tells how far any reader of the log is behind: the store here, a stage by its marks."""

    async def observe(self) -> None:
        """Compare the ends of the log with what is applied and with what each stage has processed."""
        node, now = self._node, self._node.clock.monotonic()
        try:
            ends = await node.log.end_offsets(node.followed)
        except Unavailable:
            return  # `log` is reported as down by `report`
        self.log_ends.observe(ends, now)
        for topic in {at.topic for at in ends}:
            self._look(f"topic {topic}", now, [(end, node.applied.next_offset(at)) for at, end in ends.items() if at.topic == topic])
        stages: list[Stage | type[Stage]] = [*(runner.stage for runner in node.runners), *node.elsewhere]
        for stage in stages:
            name = stage.name
            source = MEMORY.name if stage.follows else stage.source.name
            reached = [(end, node.applied.next_offset(at, name)) for at, end in ends.items() if at.topic == source]
            self._look(f"stage {name}", now, reached)

    def backlog(self) -> Backlog:
        """What the store lacks of the log as it was seen last, at most a second ago."""
        return self.log_ends.backlog(self._node.applied.next_offset, self._node.clock.monotonic(), age_at_start=self._age_at_start)

    def _age_at_start(self, at: Partition) -> float | None:
        """The oldest record that is lacking is about as old as the last one that was applied."""
        written_ms = self._node.materialiser.written_ms.get(at, 0)
        return None if written_ms <= 0 else self._node.clock.now().timestamp() - written_ms / 1000

    def _look(self, part: str, now: float, pairs: list[tuple[int, int]]) -> None:
        watch = self._watches.setdefault(part, Watch(now, now))
        watch.observe(now, sum(reached for _, reached in pairs), sum(max(0, end - reached) for end, reached in pairs))

    async def report(self) -> dict[str, Any]:
        """Everything `thalweg status` shows; `status` is green or red, `problems` says why."""
        node, now = self._node, self._node.clock.monotonic()
        await self.observe()
        parts = {
            part: {"state": watch.state(now), "applied": watch.reached, "lag": watch.lag} for part, watch in sorted(self._watches.items())
        }
        elsewhere = {f"stage {stage.name}" for stage in node.elsewhere}
        problems = [
            f"{part} is {seen['state']} (lag {seen['lag']}{'; another node has to run it' if part in elsewhere else ''})"
            for part, seen in parts.items()
            if seen["state"] in ("behind", "stuck")
        ]
        for runner in node.runners:
            seen = parts.setdefault(f"stage {runner.stage.name}", {"applied": 0, "lag": 0})
            if self._is_dead(runner, now):
                seen["state"] = "dead"
                problems.append(f"stage {runner.stage.name} is dead: {runner.failure or 'nothing runs it'}")
            elif runner.waiting and seen["state"] in ("behind", "stuck"):
                problems.append(f"stage {runner.stage.name} waits: {runner.waiting}")
            elif runner.life == "starting":
                seen["state"] = "starting"
        log = await self._log_state()
        if log != "ok":
            problems.append(log)
        full = low_sentence(node.settings.home)
        if full is not None:
            problems.append(full)
        if not node.gateway.spool.is_empty:
            problems.append("writes are spooled: the log did not take them")
        indexes = node.indexes.state()
        problems += [f"the {name} index is {state}" for name, state in _index_states(indexes).items() if state not in ("ready", "none")]
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
            "topics": {part.removeprefix("topic "): seen for part, seen in parts.items() if part.startswith("topic ")},
            "stages": {runner.stage.name: parts.get(f"stage {runner.stage.name}", {}) | _runner_state(runner) for runner in node.runners}
            | {stage.name: parts.get(f"stage {stage.name}", {}) for stage in node.elsewhere},
            "materialiser": vars(node.materialiser.counters),
            "indexes": indexes,
            "dead_letters": await self._dead_letters(),
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

    async def _dead_letters(self) -> dict[str, int]:
        rows = await self._node.reader.run(
            lambda cursor: cursor.execute("SELECT topic, count(*) FROM dead_letters GROUP BY topic ORDER BY topic").fetchall()
        )
        return dict(rows)


def _runner_state(runner: StageRunner) -> dict[str, Any]:
    return {"processed": runner.processed, "buried": runner.buried, "busy_s": round(runner.busy_s, 3), "failure": runner.failure}


def _index_states(indexes: dict[str, Any]) -> dict[str, str]:
    return {name: state["state"] for name, state in indexes.items() if isinstance(state, dict) and "state" in state}
