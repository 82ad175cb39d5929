"""Atomic files: they appear whole or not at all, readable by their owner only."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from streams.files import sync

SUFFIX = ".thalweg.tmp"


@contextmanager
def atomic_file(target: Path) -> Iterator[BinaryIO]:
    """Open a new file that replaces `target`, synced, unless the block raises.

    Until then it lies beside `target` under an unpredictable name; it is new and is not opened through a link.
    A link at `target` is replaced, not followed.
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=SUFFIX, dir=target.parent)
    try:
        with open(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    sync(target.parent)


def remove_left_overs(folder: Path) -> None:
    """Delete the half-written files of killed processes below a folder that no process is writing to."""
    for left_over in folder.rglob(f".*{SUFFIX}"):
        left_over.unlink(missing_ok=True)
