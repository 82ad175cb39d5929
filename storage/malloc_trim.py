"""Giving memory back: glibc keeps what a rebuild or a load has freed, for each thread that freed it."""

from __future__ import annotations

import ctypes
import gc


def release_free_memory() -> None:
    """Return what is free to the system, where its C library can; tens of milliseconds, off the event loop."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # not glibc: its allocator gives back by itself, or not at all
        pass
