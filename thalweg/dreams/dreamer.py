"""Begins the dreams that the log asks for, ends them when somebody works, and asks by itself.

A dream that a former process left unfinished is finished with the reason `error`; what it changed stands.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import time
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, TypeVar

import duckdb

from mcp_ingress.activity import Activity
from mcp_ingress.toolsets.context_graph.dreams import Dream, Dreams
from processors.context_graph.read import dreams as stored
from processors.context_graph.rules.dream_ids import SOURCE, fact_id
from processors.context_graph.rules.dream_report import DreamReport
from processors.context_graph.rules.idleness import QUIET_BELOW, waits_for
from processors.frame.job import APPLY_WAIT_S, Job
from streams.clock import format_time
from streams.codec import encode
from streams.errors import ThalwegError
from streams.event_types.context_dreams import DREAM_FINISHED, DREAM_REQUESTED
from streams.events import Event
from streams.positions import Freshness
from streams.topics import DERIVED, MEMORY
from thalweg.dreams.cycle import NREM_S, REM_S, Cycle, Steps, Woken
from thalweg.process.running import Running

IDLE_LOOK_S = 15.0
"""How often it looks whether a dream is due by itself."""
WANTED_S = 0.05
"""How often a dream looks whether another process has ended it."""
PRESSURE_S = 10.0
"""A store that is further behind the log than this is not kept back by a dream."""
RETRY_S = 1.0
RESTS, LEAST_REST_S = 2, 0.002
"""Behind each slice a dream rests this many times as long as it took, and at least this many seconds."""
Result = TypeVar("Result")

logger = logging.getLogger(__name__)


class Dreamer:
    """One for each node that has the store. `run` until cancelled."""

    def __init__(self, running: Running) -> None:
        self._running = running
        self._dreams, self._activity = running.services.part(Dreams), running.services.part(Activity)
        self._job = Job("dreams", running.log, running.store.applied, self._look)
        self._tasks: set[asyncio.Task[None]] = set()
        self._has_looked = False
        self._looked_at = 0.0

    @property
    def is_dreaming(self) -> bool:
        """Whether a dream runs: the node does not end under it."""
        return bool(self._dreams.running)

    async def status(self) -> dict[str, Any]:
        """Which namespaces dream now, what of the upkeep of memories is switched on, and what was done last."""
        settings = self._running.settings
        return {
            "dreaming": {namespace: dream.state for namespace, dream in sorted(self._dreams.running.items())},
            "when_idle": settings.dream_when_idle,
            "merge_in_dreams": settings.merge_in_dreams,
            "observe_drift": settings.observe_drift,
            "last": await self._read(stored.read_last_runs),
            "problem": self._job.problem,
        }

    async def run(self) -> None:
        """Dream what is asked for, until cancelled."""
        self._dreams.look = self._job.wake
        self._activity.on_call.append(self._called)
        try:
            await self._job.run()
        finally:
            self._dreams.look = None
            for task in self._tasks:
                task.cancel()

    def _called(self, namespace: str) -> None:
        if (dream := self._dreams.running.get(namespace)) is not None:
            dream.wake("external_query")

    async def _look(self) -> None:
        if not self._has_looked:  # what former processes asked for is known only then
            await self._job.wait_applied(self._running.services.requests.inherited)
        for cycle in await self._read(stored.read_unfinished):
            if not self._has_looked:
                await self._finish(cycle, cycle.report or _report(cycle), "error")
            elif cycle.namespace not in self._dreams.running:
                self._begin(cycle)
        self._has_looked = True
        now = self._running.clock.monotonic()
        if self._running.settings.dream_when_idle and now - self._looked_at >= IDLE_LOOK_S:
            self._looked_at = now
            await self._ask_by_itself()

    def _begin(self, cycle: stored.StoredDream) -> None:
        dream = Dream(cycle.dream_id, cycle.namespace, _report(cycle))
        self._dreams.begin(dream)
        task = asyncio.ensure_future(self._dream(cycle, dream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _dream(self, cycle: stored.StoredDream, dream: Dream) -> None:
        """Dream until it is done or woken, then leave the report."""
        if cycle.aborted_at is not None:
            dream.wake("manual_abort")
        work = Cycle(self._running, dream, cycle.started_at)
        began = time.perf_counter()
        try:
            await self._phase(dream, "NREM", work, work.nrem(), NREM_S)
            await self._phase(dream, "REM", work, work.rem(), REM_S)
        except Woken:
            pass  # what it did until then stands
        except ThalwegError as error:
            logger.warning("a dream ended: %s", error.message)
            dream.wake("error")
        except Exception:
            logger.exception("a dream failed")
            dream.wake("error")
        dream.stop()
        await work.settled()
        dream.report = replace(
            dream.report,
            total_duration_ms=_ms(began),
            wake_latency_ms=None if dream.wake_latency_ms is None else round(dream.wake_latency_ms, 3),
        )
        while True:
            try:
                await self._finish(cycle, dream.report, dream.wake_reason or "cycle_complete")
                break
            except ThalwegError as error:
                logger.warning("the report of a dream waits: %s", error.message)
                await asyncio.sleep(RETRY_S)
        self._dreams.end(dream)

    async def _phase(self, dream: Dream, state: Any, work: Cycle, steps: Steps, limit_s: float) -> None:
        """Step through a phase until it is done, its time has passed, or the dream is woken."""
        if dream.woken.is_set():
            return
        dream.state = state
        await work.tell()
        began = looked_at = time.perf_counter()
        completed = False
        try:
            async with aclosing(steps):
                async for took_s in steps:
                    now = time.perf_counter()
                    if now - looked_at >= WANTED_S:
                        looked_at = now
                        await self._wake_unwanted(dream)
                    if now - began >= limit_s or await work.rest(max(RESTS * took_s, LEAST_REST_S)):
                        break
            completed = not dream.woken.is_set()
        finally:
            about = {"duration_ms": _ms(began), "completed": completed}
            dream.report = dream.report.with_nrem(**about) if state == "NREM" else dream.report.with_rem(**about)

    async def _wake_unwanted(self, dream: Dream) -> None:
        """Wake a dream that another process has aborted or finished, or that keeps the store back."""
        cycle = await self._read(lambda cursor: stored.read_cycle(cursor, dream.namespace, dream.dream_id))
        if cycle is not None and (cycle.aborted_at is not None or cycle.ended_at is not None):
            dream.wake("manual_abort")
        if self._running.services.backlog().seconds >= PRESSURE_S:
            dream.wake("resource_pressure")

    async def _finish(self, cycle: stored.StoredDream, report: DreamReport, wake_reason: str) -> None:
        """Count what the store has of the dream, and publish its end."""
        await self._applied(Freshness(await self._running.log.end_offsets([DERIVED.name, MEMORY.name])))
        namespace, dream_id = cycle.namespace, cycle.dream_id
        report = await self._read(lambda cursor: stored.read_counted(cursor, namespace, dream_id, report))
        now = self._running.clock.now()
        is_complete = wake_reason == "cycle_complete"
        report = replace(report, completed=is_complete, wake_reason=wake_reason, ended_at=format_time(now))
        data = {"dream_id": dream_id, "wake_reason": wake_reason, "report": report.to_json()}
        identity = fact_id(DREAM_FINISHED, namespace, dream_id)
        record = encode(DERIVED.name, Event(identity, SOURCE, DREAM_FINISHED, namespace, now, data))
        await self._applied(Freshness.after(await self._running.log.publish([record])))

    async def _applied(self, token: Freshness) -> None:
        """Wait as long as it takes: a caller may wait for the dream's end."""
        while not await self._running.store.applied.wait(token, timeout_s=APPLY_WAIT_S):
            logger.info("dreams: the store is behind")

    async def _ask_by_itself(self) -> None:
        """Ask for a dream in each namespace that is idle and was used since its last one."""
        now = self._running.clock.now()
        moment = now.astimezone(UTC).replace(tzinfo=None)
        for namespace in await self._read(functools.partial(stored.read_used, now=moment)):
            history = await self._read(functools.partial(stored.read_history, namespace=namespace))
            last, activity = history.last, self._activity.share(namespace)
            if last is not None and last.ended_at is None:
                continue
            since_s = None if last is None else (moment - _ended(last)).total_seconds()
            if waits_for(activity, self._activity.idle_s(namespace, QUIET_BELOW), since_s) is None:
                await self._ask(namespace, activity, history.ended_dream_id, now)

    async def _ask(self, namespace: str, activity: float, ended_dream_id: str | None, now: datetime) -> None:
        data: dict[str, Any] = {"activity": activity, "force": False, "cause": "idle", "ended_dream_id": ended_dream_id}
        identity = fact_id(DREAM_REQUESTED, namespace, ended_dream_id or "")
        await self._job.publish([encode(MEMORY.name, Event(identity, SOURCE, DREAM_REQUESTED, namespace, now, data))])
        self._job.wake()

    async def _read(self, query: Callable[[duckdb.DuckDBPyConnection], Result]) -> Result:
        return await self._running.store.reader.run(query)


def _report(cycle: stored.StoredDream) -> DreamReport:
    return DreamReport(format_time(cycle.started_at.replace(tzinfo=UTC)))


def _ended(cycle: stored.StoredDream) -> datetime:
    return cycle.ended_at or cycle.started_at


def _ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)
