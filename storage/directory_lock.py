"""The lock of a data directory, which one process owns. Light enough for what starts a node to import."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from streams.errors import StoreError
from streams.files import sync

LOCK_NAME = "store.lock"


def lock_directory(home: Path) -> tuple[int, bytes]:
    """Take the lock of a directory; returns it, and what the previous owner left in it.

    That is nothing when it ended cleanly, else its process id. Raises StoreError that names a present owner.
    """
    handle = os.open(home / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        owner = os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
        os.close(handle)
        raise StoreError(
            f"The data directory is in use by the process with pid {owner}: "
            "stop that one (`thalweg stop`) or choose another directory with THALWEG_HOME.",
            owner_pid=owner,
        ) from error
    former = os.pread(handle, 32, 0)
    os.ftruncate(handle, 0)
    os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
    os.fsync(handle)  # so that after a power cut the next owner knows that this one did not end cleanly
    sync(home)
    return handle, former


def lock_holder(lock: Path) -> str | None:
    """The process id in a lock file; None when no process holds the lock."""
    try:
        handle = os.open(lock, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return None
    except BlockingIOError:
        return os.pread(handle, 32, 0).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(handle)


def release_directory(lock: int, left_behind: bytes = b"") -> None:
    """Release the directory. The lock file stays with `left_behind`; empty, it says that the owner ended cleanly."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, left_behind, 0)
    os.close(lock)
