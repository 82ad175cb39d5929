"""A full disk: how to recognise it, and how much room is left."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

LOW_BYTES = 16 * 1024 * 1024
"""With less room than this, writes may fail at any time."""
_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_SIGNS = ("no space left on device", "disk is full", "disk quota exceeded")


def is_full(error: BaseException) -> bool:
    """Whether this error, or its cause, is a full disk; the engines say it in words only."""
    if isinstance(error, OSError) and error.errno in _NUMBERS:
        return True
    if any(sign in str(error).lower() for sign in _SIGNS):
        return True
    return error.__cause__ is not None and is_full(error.__cause__)


def full_sentence(directory: Path) -> str:
    """The sentence for the operator of a node whose disk is full."""
    return f"the disk of {directory} is full. Make room and start the node again; nothing that was accepted is lost."


def low_sentence(directory: Path) -> str | None:
    """A sentence when there is little room left; None otherwise, and for a directory that cannot be read."""
    try:
        free = shutil.disk_usage(directory).free
    except OSError:
        return None
    if free >= LOW_BYTES:
        return None
    return f"the disk of the data directory is full ({free // 1024} KiB left): writes are refused until there is room"
