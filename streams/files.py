"""Files that are still there after the power has failed: bytes are once their file is synced, names once their directory is."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Put a file's bytes, or a directory's names, on disk before this returns."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Make a directory and those above it that are missing; their names are on disk when this returns. Raises OSError."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(mode, parents=True, exist_ok=True)
    for directory in missing:
        sync(directory.parent)
