"""When Python looks for garbage cycles: rarely, because a start and a batch make many objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def calm() -> None:
    """Looking is a tenth of a start and a fifth of a batch otherwise."""
    gc.set_threshold(500_000, 20, 100)


@contextmanager
def calmed() -> Iterator[None]:
    """As `calm`, while the block runs: for a long run of batches in a process that is no node."""
    before = gc.get_threshold()
    calm()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def settle() -> None:
    """What is alive now stays: full collections would stop every thread for tens of milliseconds."""
    gc.collect()
    gc.freeze()
