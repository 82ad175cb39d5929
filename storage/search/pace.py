"""Background work yields to calls.

A thread that needs the interpreter waits up to five milliseconds for one that does not release it, and a search or a
transaction needs it anew after each of some thirty calls into other libraries. So background work pauses three times a
millisecond: always for a moment, in which a waiting thread really gets it (`sleep(0)` takes it back at once), and
longer while a call runs, but never for more than its share, so that calls without end cannot stop it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

WORK_S = 0.0003
"""A thread works this long between two pauses; a call of `pause` before that does nothing."""
MOMENT_S = 0.0002
SHARE = 2.0
"""This many times what it has worked it pauses while a call runs: under calls without end it takes three times as long.

With 1.2 times the slowest twentieth of writes takes a tenth longer (docs/adr/0014)."""
LONGEST_S = 0.002


class Pace:
    """Counts running calls, and paces background work by them. Any number of threads."""

    def __init__(self) -> None:
        self._calls: set[object] = set()
        self._thread = threading.local()
        """Of each thread when it last `paused`, and whether it `answers` a call."""

    @contextmanager
    def serving(self) -> Iterator[None]:
        """A call runs: background work yields while the block does."""
        call = object()
        self._calls.add(call)
        try:
            yield
        finally:
            self._calls.discard(call)

    @property
    def is_serving(self) -> bool:
        """Whether a call runs."""
        return bool(self._calls)

    @contextmanager
    def answering(self) -> Iterator[None]:
        """This thread works for a call: in the block it pauses for moments only, as if no call ran."""
        self._thread.answers = True
        try:
            yield
        finally:
            self._thread.answers = False

    def pause(self) -> None:
        """Call in long work, the more often the better: most calls return at once."""
        worked = time.perf_counter() - getattr(self._thread, "paused", 0.0)
        if worked < WORK_S:
            return
        gives_way = self._calls and not getattr(self._thread, "answers", False)
        time.sleep(min(SHARE * worked, LONGEST_S) if gives_way else MOMENT_S)
        self._thread.paused = time.perf_counter()


def pausing(items: Iterable[Item], pause: Callable[[], None]) -> Iterator[Item]:
    """The items, with a pause after each."""
    for item in items:
        yield item
        pause()
