"""Background work yields to searches.

A thread that needs the interpreter waits up to five milliseconds for one that does not release it, and a search needs
it anew after each of some thirty calls into other libraries. So background work pauses after every millisecond: always
for a moment, in which a waiting thread really gets it (`sleep(0)` takes it back at once), and longer while a search
runs, but never for more than its share, so that searches without end cannot stop it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

PAUSE_ITEMS = 16
"""Documents, about a millisecond of analysis, between two pauses."""
MOMENT_S = 0.0002
SHARE_S = 0.0012
"""The longest pause after a millisecond of work: a rebuild under searches without end takes about twice as long."""


class Pace:
    """Counts running searches, and paces background work by them. Any number of threads."""

    def __init__(self) -> None:
        self._searching: set[object] = set()

    @contextmanager
    def searching(self) -> Iterator[None]:
        """Background work yields while the block runs."""
        search = object()
        self._searching.add(search)
        try:
            yield
        finally:
            self._searching.discard(search)

    def pause(self) -> None:
        """Call after every millisecond of background work."""
        time.sleep(SHARE_S if self._searching else MOMENT_S)


def pausing(items: Iterable[Item], pause: Callable[[], None]) -> Iterator[Item]:
    """The items, with a pause after each `PAUSE_ITEMS`."""
    for number, item in enumerate(items):
        yield item
        if number % PAUSE_ITEMS == 0:
            pause()
