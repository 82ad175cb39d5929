"""Reads image files of the one folder that the operator allows, whatever path a caller names."""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePosixPath

MAX_BYTES = 16 << 20
"""The largest file that is read, 16 MB."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class ImageFolder:
    """The files below one folder. No link is followed, no `..` either, and what is not a regular file is not read."""

    def __init__(self, root: Path | None) -> None:
        """`root`: as the operator names it, None where no file may be read."""
        self._root = None if root is None else root.absolute()

    def read(self, name: str) -> bytes | None:
        """The bytes of a file by its path in the folder or from the root; None of what may not be read.

        Each folder on the way is opened in the one before, so that none can be changed for a link meanwhile.
        """
        path = PurePosixPath(name)
        if self._root is None or "\0" in name:
            return None
        if path.is_absolute():
            if not path.is_relative_to(self._root):
                return None
            path = path.relative_to(self._root)
        if not path.parts or ".." in path.parts:
            return None
        try:
            handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            for part in path.parts[:-1]:
                handle = _opened(part, _FOLDER, handle)
            return _content(_opened(path.parts[-1], _FILE, handle))
        except OSError:
            return None


def _opened(name: str, flags: int, folder: int) -> int:
    """A file or folder in an open folder, which is closed. Raises OSError."""
    try:
        return os.open(name, flags, dir_fd=folder)
    finally:
        os.close(folder)


def _content(handle: int) -> bytes | None:
    """What an open file has, which is closed."""
    try:
        facts = os.fstat(handle)
        if not stat.S_ISREG(facts.st_mode) or facts.st_size > MAX_BYTES:
            return None
        with open(handle, "rb", closefd=False) as file:
            data = file.read(MAX_BYTES + 1)
        return data if len(data) <= MAX_BYTES else None
    finally:
        os.close(handle)
