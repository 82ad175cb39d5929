"""How busy each namespace is: by the seconds of the last minute with a call that stores or recalls."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable
from itertools import islice

WINDOW_S = 60
KEPT = 300
"""Seconds with a call that are remembered of a namespace."""


class Activity:
    """Of a node, by namespace; in memory, so that a node that has just started is quiet. From one event loop."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._began = monotonic()
        self._seconds: dict[str, deque[int]] = {}
        self._called_at = -math.inf
        self.on_call: list[Callable[[str], None]] = []
        """What is told the namespace of each call, at once."""

    def note(self, namespace: str) -> None:
        """A call that stores or recalls has come."""
        self._called_at = self._monotonic()
        seconds, now = self._seconds.setdefault(namespace, deque(maxlen=KEPT)), int(self._called_at)
        if not seconds or seconds[-1] < now:
            seconds.append(now)
        for told in self.on_call:
            told(namespace)

    def since_call_s(self) -> float:
        """For how many seconds no namespace was called."""
        return self._monotonic() - self._called_at

    def share(self, namespace: str) -> float:
        """The share of the last minute's seconds with a call, 0 to 1."""
        since = int(self._monotonic()) - WINDOW_S
        return sum(second > since for second in self._seconds.get(namespace, ())) / WINDOW_S

    def idle_s(self, namespace: str, below: float) -> float:
        """For how many seconds the share has been below this; since the start at most."""
        now, seconds = self._monotonic(), self._seconds.get(namespace, ())
        count = max(1, math.ceil(round(below * WINDOW_S, 6)))
        firsts = zip(seconds, islice(seconds, count - 1, None), strict=False)
        busy = [first for first, last in firsts if last - first < WINDOW_S]
        if not busy and len(seconds) == KEPT:
            busy = [next(iter(seconds))]  # what came before that is forgotten
        return max(0.0, now - max([self._began, *(first + WINDOW_S for first in busy[-1:])]))
