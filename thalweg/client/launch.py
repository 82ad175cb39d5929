"""Finding the node: connect to its socket, or start it when nobody answers. Two callers at once start one node."""

from __future__ import annotations

import fcntl
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from storage.directory_lock import LOCK_NAME, lock_holder
from streams.errors import SettingsError
from thalweg.environment import process_environment
from thalweg.paths import make_home, socket_path

START_S = 60.0
ATTEMPTS = 2
POLL_S = 0.02
OWNER_POLL_S = 0.1
LOG_TAIL = 2000
MAX_LOG = 5 * 1024 * 1024
USAGE_ERROR = 2
"""Exit code of a node that will not start however often it is tried."""


OF_A_CONNECTION = ("THALWEG_NAMESPACE", "THALWEG_TOOLSETS", "THALWEG_READ_ONLY")


class NodeError(Exception):
    """The node could not be reached or started; the message is one sentence and the end of its log."""


class Launcher:
    """Connects to the node of one data directory, and starts one when none answers.

    `command` starts it, detached, its output in node.log.
    """

    def __init__(self, home: Path, command: list[str], start_s: float = START_S) -> None:
        self.home = home
        self._command = command
        self._start_s = start_s
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def log_path(self) -> Path:
        return self.home / "node.log"

    def connect(self) -> socket.socket:
        """A connection to a node that answers. Raises NodeError when there is none in time."""
        try:
            make_home(self.home)
            path = socket_path(self.home)
        except SettingsError as error:
            raise NodeError(error.message) from None
        connection = _try(path)
        if connection is not None:
            return connection
        deadline = time.monotonic() + self._start_s
        with self._start_lock(deadline):
            for _ in range(ATTEMPTS):
                connection = self._of_owner(path, deadline) or self._start(path, deadline)
                if connection is not None:
                    return connection
                code = self._child.poll() if self._child else None
                if code == USAGE_ERROR or time.monotonic() > deadline:
                    break
        raise NodeError(f"The node does not start. The last lines of {self.log_path}:\n{self.log_tail()}")

    def log_tail(self) -> str:
        """The end of the node's log."""
        try:
            with self.log_path.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL))
                return log.read().decode("utf-8", "replace").strip()
        except OSError:
            return "(there is no log)"

    def _of_owner(self, path: Path, deadline: float) -> socket.socket | None:
        """A connection to the node that owns the data directory, once it answers; None once none does.

        A node that is ending owns it to its last moment; one that is starting, also where what started it was killed.
        Raises NodeError for an owner that does not answer in time.
        """
        while (connection := _try(path)) is None and (owner := lock_holder(self.home / LOCK_NAME)) is not None:
            if time.monotonic() > deadline:
                raise NodeError(
                    f"The data directory is in use by the process with pid {owner}, which does not answer: stop that "
                    "one (`thalweg stop`) or choose another directory with THALWEG_HOME."
                )
            time.sleep(OWNER_POLL_S)
        return connection

    def _start(self, path: Path, deadline: float) -> socket.socket | None:
        """Start the node and wait until it answers; None when it ended before that, or time is up."""
        if self._child is not None:
            self._child.poll()  # reap the one that died
        with _open(self.log_path) as log:
            if log.tell() > MAX_LOG:
                log.truncate(0)
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=_node_environment(),
            )
        while time.monotonic() < deadline:
            connection = _try(path)
            if connection is not None:
                return connection
            if self._child.poll() is not None:
                return None
            time.sleep(POLL_S)
        return None

    @contextmanager
    def _start_lock(self, deadline: float) -> Iterator[None]:
        """Hold the lock under which a node is started."""
        with _open(self.home / "node.start") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        raise NodeError(
                            f"Another process has been starting the node for {self._start_s:g} s."
                        ) from None
                    time.sleep(POLL_S)
            yield


def _node_environment() -> dict[str, str]:
    """The environment without what says what this client is to see: the node serves others too."""
    return {name: value for name, value in process_environment().items() if name not in OF_A_CONNECTION}


def _try(path: Path) -> socket.socket | None:
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        return None
    return connection


def _open(path: Path) -> BinaryIO:
    """The file, to append to, for its owner alone. Raises NodeError."""
    try:
        return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
    except OSError as error:
        raise NodeError(f"{path} cannot be used: {error.strerror}. Move it away or mend its rights.") from None
