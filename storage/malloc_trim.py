"""The memory of the C library: glibc keeps what is freed, in an arena of each thread."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

MAX_ARENAS = 2
"""As many threads as cores allocate at a time, because most hold the interpreter; glibc would make eight a core."""
_M_ARENA_MAX = -8


def share_arenas() -> None:
    """Have all threads share a few arenas; call before there are threads."""
    with suppress(OSError, AttributeError):  # another C library: its allocator returns memory by itself, or never
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, MAX_ARENAS)


def trim() -> None:
    """Return free memory to the system where the C library can; takes some milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def release_free_memory() -> None:
    """As `trim`, after a collection of garbage: for what a rebuild or a load leaves behind."""
    gc.collect()
    trim()
