"""The dreams that run in this node, as its tools see them and wake them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from processors.context_graph.rules.dream_report import DreamReport

State = Literal["Awake", "NREM", "REM", "Waking"]
STATES: tuple[State, ...] = ("Awake", "NREM", "REM", "Waking")


@dataclass
class Dream:
    """A dream that runs here. `stopped` is set when it works no more, `over` when the store has its report."""

    dream_id: str
    namespace: str
    report: DreamReport
    state: State = "NREM"
    wake_reason: str | None = None
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)
    _woken_at: float = 0.0
    wake_latency_ms: float | None = None
    """From the call that woke it until it stopped; None of one that came to its own end."""

    def wake(self, reason: str) -> None:
        """End it as soon as its slice has ended; the first reason stands."""
        if self.wake_reason is None:
            self.wake_reason, self._woken_at = reason, time.perf_counter()
            self.woken.set()

    def stop(self) -> None:
        """It works no more."""
        self.state = "Waking"
        if self.woken.is_set():
            self.wake_latency_ms = (time.perf_counter() - self._woken_at) * 1000
        self.stopped.set()


class Dreams:
    """Those of a node, at most one a namespace. `look` has the node look at once whether one is to begin."""

    def __init__(self) -> None:
        self.running: dict[str, Dream] = {}
        self.look: Callable[[], None] | None = None
        """None in a node where nothing dreams."""
        self._begun: dict[str, asyncio.Event] = {}
        self._ended: dict[str, Dream] = {}

    def state(self, namespace: str) -> State:
        """In which state a namespace is."""
        dream = self.running.get(namespace)
        return "Awake" if dream is None else dream.state

    def begin(self, dream: Dream) -> None:
        self.running[dream.namespace] = dream
        if (begun := self._begun.pop(dream.dream_id, None)) is not None:
            begun.set()

    def end(self, dream: Dream) -> None:
        """Its report is in the store."""
        self._ended[dream.namespace] = self.running.pop(dream.namespace)
        dream.state = "Awake"
        dream.over.set()

    async def finished(self, namespace: str, dream_id: str, timeout_s: float) -> Dream | None:
        """The dream, once it is over or the time has passed; None where it does not begin in this time."""
        if self.look is None:
            return None
        try:
            async with asyncio.timeout(timeout_s):
                while (dream := self._find(namespace, dream_id)) is None:
                    self.look()
                    await self._begun.setdefault(dream_id, asyncio.Event()).wait()
                await dream.over.wait()
        except TimeoutError:
            self._begun.pop(dream_id, None)
        return self._find(namespace, dream_id)

    def _find(self, namespace: str, dream_id: str) -> Dream | None:
        known = (self.running.get(namespace), self._ended.get(namespace))
        return next((dream for dream in known if dream is not None and dream.dream_id == dream_id), None)
