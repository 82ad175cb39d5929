"""A worker (`thalweg up --role worker`) runs the stages that need no store.

It runs beside the nodes of the same Kafka. It has no store and no door: what it derives goes to the log, and the nodes
materialise it. Kafka gives each member of the group its share of the partitions; ids are functions of their input, so
that what two members derive is applied once.
"""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from processors.frame.stage import StageParts, StageRunner
from processors.memory.stages.embed import Embed
from storage.directory_lock import lock_directory, release_directory
from streams.backlog import LogEnds
from streams.clock import Clock, SystemClock
from streams.errors import Refused, Unavailable
from streams.log import open_log
from streams.positions import Partition
from streams.topics import MEMORY, with_partitions
from thalweg.control.server import ControlServer
from thalweg.paths import control_path, make_home
from thalweg.process.housekeeping import clear, narrow
from thalweg.process.model import load_model
from thalweg.process.parts import Parts
from thalweg.process.stage_apps import GROUP, run_stages
from thalweg.settings import Settings
from thalweg.status.lag import RED, Watch, sentence
from thalweg.status.status import Status, stages_status

LOOK_S = 1.0


class Worker(Parts):
    """One process: log and stages. `start`, then `wait`, then `stop`."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.clock = clock or SystemClock()
        self.log = open_log(settings.broker_url)
        parts = StageParts(None)
        self._embed = parts.stage(Embed)
        self._runners = [StageRunner(stage, self.log, self.clock) for stage in parts.stages()]
        self.started_at, self._since = self.clock.now(), self.clock.monotonic()
        self._log_ends, self._watch = LogEnds(), Watch(self._since)

    async def start(self) -> None:
        """Load the model, reach the broker, join the group. Raises a ThalwegError with one sentence."""
        settings = self.settings
        make_home(settings.home)
        narrow(settings.home, settings.broker_url)
        lock, _ = lock_directory(settings.home)
        self._closers.append(functools.partial(asyncio.to_thread, release_directory, lock))
        clear(settings.home)
        self._embed.embedder = await asyncio.to_thread(load_model, settings)
        await self.log.start()
        self._closers.append(self.log.stop)
        await self.log.create_topics(with_partitions(settings.partitions))
        self._guard("stages", run_stages(settings, self.log, self._runners, self._closers))
        self._guard("observation", self._observe())
        control = ControlServer(control_path(settings.home), self._control)
        await control.start()
        self._closers.append(control.stop)

    async def _observe(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> str | None:
        """Compare what the group has acknowledged with the end of its source. What is wrong with the log, or None."""
        try:
            ends = await self.log.end_offsets([MEMORY.name])
            committed: dict[Partition, int] = await self.log.committed(GROUP, [MEMORY.name])
        except Unavailable as error:
            return f"the log is down: {error.message}"
        now = self.clock.monotonic()
        self._log_ends.observe(ends, now)
        self._watch.observe(now, sum(committed.values()), self._log_ends.backlog(lambda at: committed.get(at, 0), now))
        return None

    async def _control(self, request: dict[str, Any]) -> dict[str, Any]:
        """`status` and `stop`; everything else is a node's."""
        if request.get("command") == "status":
            return {"ok": True, **(await self.status()).to_json()}
        if request.get("command") == "stop":
            asyncio.get_running_loop().call_later(0.05, self.ask_to_stop)  # after the answer is out
            return {"ok": True}
        return {
            "ok": False,
            "code": Refused.code,
            "error": "A worker has no store: ask a node of the role all or ingress.",
        }

    async def status(self) -> Status:
        """Look at the log now. The lag is the whole group's: which member has which partition is Kafka's."""
        problem, now = await self._look(), self.clock.monotonic()
        seen = self._watch.report(now, self.settings.behind_s)
        names = [runner.stage.name for runner in self._runners]
        is_late = seen["state"] in RED
        stages, problems = stages_status(
            self._runners, dict.fromkeys(names, seen), names if is_late else (), now - self._since
        )
        late = [sentence(f"the group {GROUP}", seen)] if is_late else []
        embedder = self._embed.embedder
        return Status(
            settings=self.settings,
            started_at=self.started_at,
            embedder=embedder.info if embedder else None,
            problems=[*([problem] if problem else []), *late, *problems],
            stages=stages,
        )
