"""A worker (`thalweg up --role worker`): the stages that need no store, in a process beside the nodes of the same Kafka.

It has no store and no door: what it derives goes to the log, and the nodes materialise it. Kafka gives each member of the
group its share of the partitions; ids are functions of their input, so that what two members derive is applied once.
"""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

from processors.embedding.loader import load_embedder
from processors.embedding.model import Embedder
from processors.frame.stage import Stage, StageRunner
from processors.memory.stages.embed import Embed
from processors.talos.stages.extract import Extract
from storage.database import give_up, own_directory
from streams.backlog import LogEnds
from streams.clock import Clock, SystemClock, format_time
from streams.errors import Refused, Unavailable
from streams.log import open_log
from streams.positions import Partition
from streams.topics import MEMORY, with_partitions
from thalweg.control.server import ControlServer
from thalweg.paths import control_path, make_home
from thalweg.process.housekeeping import clear, narrow
from thalweg.process.parts import Parts
from thalweg.process.stage_apps import GROUP, run_stages
from thalweg.settings import Settings
from thalweg.status.health import RED, START_S, Watch, sentence

LOOK_S = 1.0


class Worker(Parts):
    """One process: log and stages. `start`, then `wait`, then `stop`."""

    def __init__(self, settings: Settings, clock: Clock | None = None) -> None:
        super().__init__()
        self.settings = settings
        self.clock = clock or SystemClock()
        self.log = open_log(settings.broker_url)
        self.embedder: Embedder | None = None
        self.runners: list[StageRunner] = []

    async def start(self) -> None:
        """Load the model, reach the broker, join the group. Raises a ThalwegError with one sentence."""
        settings = self.settings
        make_home(settings.home)
        narrow(settings.home, settings.broker_url)
        lock, _ = own_directory(settings.home)
        self._closers.append(functools.partial(asyncio.to_thread, give_up, lock))
        clear(settings.home)
        self.started_at = self.clock.now()
        self._since = self.clock.monotonic()
        self._log_ends, self._watch = LogEnds(), Watch(self._since)
        model = Path(settings.model_path) if settings.model_path else None
        self.embedder = await asyncio.to_thread(
            load_embedder,
            settings.embedder,
            cache_dir=settings.home / "models",
            model_path=model,
            threads=settings.embed_threads,
        )
        await self.log.start()
        self._closers.append(self.log.stop)
        await self.log.create_topics(with_partitions(settings.partitions))
        stages: list[Stage] = [Extract(), Embed(self.embedder)]
        self.runners = [StageRunner(stage, self.log, self.clock) for stage in stages]
        self._guard("stages", run_stages(settings, self.log, self.runners, self._closers))
        self._guard("observation", self._observe())
        control = ControlServer(control_path(settings.home), self._control)
        await control.start()
        self._closers.append(control.stop)

    async def _observe(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(LOOK_S)

    async def _look(self) -> str | None:
        """Compare what the group has acknowledged with the end of its source; what is wrong with the log, if anything."""
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
            return {"ok": True, **await self.report()}
        if request.get("command") == "stop":
            asyncio.get_running_loop().call_later(0.05, self.ask_to_stop)  # after the answer is out
            return {"ok": True}
        return {
            "ok": False,
            "code": Refused.code,
            "error": "A worker has no store: ask a node of the role all or ingress.",
        }

    async def report(self) -> dict[str, Any]:
        """What `thalweg status` shows of a worker. The lag is the whole group's: who has which partition is Kafka's."""
        problem, now = await self._look(), self.clock.monotonic()
        problems = [problem] if problem else []
        seen = self._watch.report(now, self.settings.behind_s)
        if seen["state"] in RED:
            problems.append(sentence(f"the group {GROUP}", seen))
        stages = {}
        for runner in self.runners:
            life = runner.life
            if runner.failure or life == "dead" or (life == "starting" and now - self._since > START_S):
                life = "dead"
                problems.append(f"stage {runner.stage.name} is dead: {runner.failure or 'nothing runs it'}")
            counted = {
                "processed": runner.processed,
                "buried": runner.buried,
                "busy_s": round(runner.busy_s, 3),
                "failure": runner.failure,
            }
            stages[runner.stage.name] = {**seen, **({} if life == "running" else {"state": life}), **counted}
        assert self.embedder is not None
        info = self.embedder.info
        return {
            "status": "red" if problems else "green",
            "problems": problems,
            "broker": self.settings.broker_url,
            "role": self.settings.role,
            "home": str(self.settings.home),
            "started_at": format_time(self.started_at),
            "embedder": {"model_id": info.model_id, "dim": info.dim, "trained": info.trained},
            "topics": {},
            "stages": stages,
        }
