"""Garbage collection runs rarely: a start and a batch make many objects and no cycles."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def collect_rarely() -> None:
    """Collect garbage rarely: else collections take a tenth of a start and a fifth of a batch."""
    gc.set_threshold(500_000, 20, 100)


@contextmanager
def rare_collections() -> Iterator[None]:
    """Collect rarely while the block runs: for a long run of batches in a process that is not a node."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)


def freeze_startup_objects() -> None:
    """Exempt all objects that are alive now from collection.

    A full collection of them would stop every thread for tens of milliseconds.
    """
    gc.collect()
    gc.freeze()
