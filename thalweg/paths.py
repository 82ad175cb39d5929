"""Where a node and its clients meet: the paths of its unix sockets. Light enough for the pump to import."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import sys
from pathlib import Path

from streams.errors import SettingsError
from streams.files import make_directory

OTHERS = 0o077
"""Rights of anybody but the owner."""
RUNTIME = "/tmp"
MAX_SOCKET_PATH = 100
"""Bytes; the kernels' limits are 108 (Linux) and 104 (macOS)."""


def make_home(home: Path) -> None:
    """Make the data directory, for its owner alone.

    One of ours that others may open is narrowed, and a line on standard error says so. Raises SettingsError when it
    cannot be made, written to or narrowed, or is somebody else's.
    """
    try:
        make_directory(home, 0o700)
        status = home.stat()
        if status.st_uid != os.geteuid():
            raise PermissionError(errno.EPERM, f"it belongs to another user, with the id {status.st_uid}")
        if not os.access(home, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, "it may not be written to")
        if status.st_mode & OTHERS:
            home.chmod(0o700)
            if home.stat().st_mode & OTHERS:
                raise PermissionError(errno.EPERM, "other users may open it, and its file system keeps no rights")
            was = f"{stat.S_IMODE(status.st_mode):03o}"
            print(
                f"thalweg: The data directory {home} was open to other users ({was}); it is yours alone now (700).",
                file=sys.stderr,
            )
    except OSError as error:
        raise SettingsError(unusable_home(home, error)) from None


def unusable_home(home: Path, error: OSError) -> str:
    """One sentence: what is wrong with the data directory, and what to do."""
    reason = error.strerror or error
    return f"The data directory {home} cannot be used ({reason}): choose another with --home or THALWEG_HOME."


def socket_path(home: Path) -> Path:
    """The agents' socket: `<home>/node.sock`.

    Where that is too long for a socket, a short name in the user's own runtime directory. Raises SettingsError
    when that directory is not the user's alone.
    """
    return _socket_path(home, "node")


def control_path(home: Path) -> Path:
    """The command line's socket, `<home>/control.sock`, by the same rule."""
    return _socket_path(home, "control")


def _socket_path(home: Path, name: str) -> Path:
    home = Path(os.path.realpath(home))
    path = home / f"{name}.sock"
    if len(os.fsencode(path)) <= MAX_SOCKET_PATH:
        return path
    return _runtime_directory() / f"{name}-{hashlib.blake2b(os.fsencode(home), digest_size=8).hexdigest()}.sock"


def _runtime_directory() -> Path:
    # Not XDG_RUNTIME_DIR or TMPDIR: an MCP client may start the pump without them, and both sides must find one place.
    directory = Path(RUNTIME) / f"thalweg-{os.getuid()}"
    directory.mkdir(mode=0o700, exist_ok=True)
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & OTHERS:
        raise SettingsError(
            f"The directory {directory} must be yours alone (0700); remove it, or choose a shorter THALWEG_HOME."
        )
    return directory
