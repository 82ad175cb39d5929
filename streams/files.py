"""Files that survive a power failure: file and directory are synced."""

from __future__ import annotations

import os
from pathlib import Path

from streams.clock import now_ms


def sync(path: Path) -> None:
    """Put a file's bytes, or a directory's names, on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def file_age_s(path: Path) -> float:
    """Seconds since a file was last written, by the machine's clock; negative when that was set back."""
    return now_ms() / 1000 - path.stat().st_mtime


def make_directory(path: Path, mode: int = 0o777) -> None:
    """Make a directory and its missing parents; their names are on disk when this returns. Raises OSError."""
    missing = [directory for directory in (path, *path.parents) if not directory.exists()]
    path.mkdir(mode, parents=True, exist_ok=True)
    for directory in missing:
        sync(directory.parent)
