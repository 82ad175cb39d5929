"""How busy each namespace is: by the seconds of the last minute with a call that stores or recalls."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from processors.context_graph.rules.idleness import QUIET_BELOW

WINDOW_S = 60
_BUSY = round(QUIET_BELOW * WINDOW_S)
"""So many seconds with a call in the window are no quiet."""


@dataclass
class _Seconds:
    """The last seconds with a call, oldest first, and until when they make the namespace busy."""

    lately: deque[int] = field(default_factory=lambda: deque(maxlen=WINDOW_S))
    busy_until: float = float("-inf")


class Activity:
    """Of a node, by namespace; in memory, so that a node that has just started is quiet. From one event loop."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._seconds: dict[str, _Seconds] = {}
        self.on_call: list[Callable[[str], None]] = []
        """What is told the namespace of each call, at once."""

    def note(self, namespace: str) -> None:
        """A call that stores or recalls has come."""
        known = self._seconds.setdefault(namespace, _Seconds())
        second = int(self._monotonic())
        if not known.lately or known.lately[-1] < second:
            known.lately.append(second)
        if len(known.lately) >= _BUSY:
            known.busy_until = max(known.busy_until, known.lately[-_BUSY] + float(WINDOW_S))
        for told in self.on_call:
            told(namespace)

    def share(self, namespace: str) -> float:
        """The share of the last minute's seconds with a call, 0 to 1."""
        known = self._seconds.get(namespace)
        if known is None:
            return 0.0
        since = int(self._monotonic()) - WINDOW_S
        return sum(second > since for second in known.lately) / WINDOW_S

    def idle_s(self, namespace: str) -> float:
        """For how many seconds the share has been below that at which nobody dreams; at most since the start."""
        now, known = self._monotonic(), self._seconds.get(namespace)
        busy_until = self._began if known is None else max(self._began, known.busy_until)
        return max(0.0, now - busy_until)
