"""Returning freed memory to the system: glibc keeps what a rebuild or a load has freed, per thread."""

from __future__ import annotations

import ctypes
import gc


def release_free_memory() -> None:
    """Return free memory to the system where the C library can; takes tens of milliseconds."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):  # another C library: its allocator returns memory by itself, or never
        pass
