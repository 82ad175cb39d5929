"""Who works in the background gives way to who searches.

A thread that needs the interpreter waits up to five milliseconds for one that does not let go of it, and a search needs it
anew after each of some thirty calls into other libraries. So background work pauses after every millisecond: always for a
moment, in which a waiting thread really gets it (`sleep(0)` takes it back at once), and longer while somebody searches, but
never for more than its share, so that searches without end cannot stop it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

MOMENT_S = 0.0002
SHARE_S = 0.0012
"""At most so long for a millisecond of work: a rebuild that is searched all the time takes about twice as long."""


class Pace:
    """Counts who searches. Any number of threads."""

    def __init__(self) -> None:
        self._searching: set[object] = set()

    @contextmanager
    def searching(self) -> Iterator[None]:
        """The background gives way while the block runs."""
        search = object()
        self._searching.add(search)
        try:
            yield
        finally:
            self._searching.discard(search)

    def pause(self) -> None:
        """Call after every millisecond of work that nobody waits for."""
        time.sleep(SHARE_S if self._searching else MOMENT_S)
