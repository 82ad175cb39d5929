"""A file that appears whole or not at all, for its owner alone, in a folder in which others may write too."""

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
    """A new file that takes the place of `target`, synced, when the block ends; when it raises, all is as it was.

    Until then it lies beside `target` under a name that nobody can foresee, is opened through no link, and was not there before.
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
    """Delete what a killed process left half-written in this folder and below; only for a folder in which nobody else writes."""
    for left_over in folder.rglob(f".*{SUFFIX}"):
        left_over.unlink(missing_ok=True)
