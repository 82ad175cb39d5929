"""The memory of the C library: glibc keeps what is freed, in an arena of each thread."""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

MAX_ARENAS = 2
"""As many threads as cores allocate at a time, because most hold the interpreter; glibc would make eight a core."""
LARGE = 4 << 20
"""A block of this many bytes goes back as soon as it is free, and so does more than that at a heap's end.

By itself glibc raises both limits to the largest block that was freed, up to 32 and 64 MB."""
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def tune_malloc() -> None:
    """Have all threads share a few arenas, which keep little that is free; call before there are threads."""
    with suppress(OSError, AttributeError):  # another C library: its allocator returns memory by itself, or never
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_ARENA_MAX, MAX_ARENAS)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGE)
        libc.mallopt(_M_TRIM_THRESHOLD, LARGE)


def trim() -> None:
    """Return free memory to the system where the C library can; takes some milliseconds."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)


def release_free_memory() -> None:
    """As `trim`, after a collection of garbage: for what a rebuild or a load leaves behind."""
    gc.collect()
    trim()
