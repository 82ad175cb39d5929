"""A process's first work in its data directory: it closes files to others and removes left-overs."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

from storage.atomic_file import remove_left_overs

FILES = (
    "log.db*",
    "thalweg.duckdb*",
    "store.lock",
    "node.*",
    "control.sock",
    "hook.log",
    "spool*",
    "token",
    "thalweg.toml",
)
FOLDERS = ("faust", "graph", "indexes", "models", "refused", "snapshots", "telemetry")
"""What is made in a data directory. Other things may lie there, which are left alone."""

logger = logging.getLogger("thalweg")


def narrow(home: Path, broker_url: str) -> None:
    """Take other users' rights to what an earlier version, a copy or a wider umask left open. The log says so."""
    log = Path(broker_url.removeprefix("sqlite://")) if broker_url.startswith("sqlite://") else home / "log.db"
    opened = [path for path in {*_made(home), *log.parent.glob(f"{log.name}*")} if _is_open(path)]
    for path in opened:
        path.chmod(path.stat().st_mode & 0o700)
    if opened:
        logger.warning("files in %s that were open to other users are yours alone now: %s", home, len(opened))


def clear(home: Path) -> None:
    """Remove what a killed process left half-written.

    Only the process that owns the directory may call it, before it writes there.
    """
    for name in FOLDERS:
        remove_left_overs(home / name)
    for left_over in home.glob(".token.*.thalweg.tmp"):
        left_over.unlink(missing_ok=True)


def _made(home: Path) -> Iterator[Path]:
    for pattern in FILES:
        yield from home.glob(pattern)
    for name in FOLDERS:
        yield from (home / name).glob("**")
        yield from (home / name).rglob("*")


def _is_open(path: Path) -> bool:
    """Whether others have rights to what is ours to narrow. A link is left alone: what it leads to may be anybody's."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False  # a socket or a temporary file that has just gone
    return not path.is_symlink() and status.st_uid == os.geteuid() and bool(status.st_mode & 0o077)
