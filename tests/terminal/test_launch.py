"""A data directory that another process owns: a client waits for that one, and starts no node beside it."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from threading import Timer

import pytest

from storage.directory_lock import lock_directory, release_directory
from thalweg.client.launch import Launcher, NodeError
from thalweg.paths import socket_path

SOON_S = 0.3
ENDS_AT_ONCE = [sys.executable, "-c", "print('started')"]


def listen(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def test_a_node_that_is_starting_is_waited_for_also_when_what_started_it_was_killed(tmp_path: Path) -> None:
    lock, _ = lock_directory(tmp_path)
    servers: list[socket.socket] = []
    Timer(SOON_S, lambda: servers.append(listen(socket_path(tmp_path)))).start()
    launcher = Launcher(tmp_path, ENDS_AT_ONCE)
    launcher.connect().close()
    assert not launcher.log_path.exists(), "no other node was started"
    servers[0].close()
    release_directory(lock)


def test_a_node_that_is_ending_is_waited_for_and_the_next_one_started(tmp_path: Path) -> None:
    lock, _ = lock_directory(tmp_path)
    Timer(SOON_S, release_directory, (lock,)).start()
    with pytest.raises(NodeError, match="does not start"):
        Launcher(tmp_path, ENDS_AT_ONCE).connect()
    assert "started" in (tmp_path / "node.log").read_text()


def test_an_owner_that_does_not_answer_in_time_is_named(tmp_path: Path) -> None:
    lock, _ = lock_directory(tmp_path)
    with pytest.raises(NodeError, match=f"pid {os.getpid()}, which does not answer"):
        Launcher(tmp_path, ENDS_AT_ONCE, start_s=SOON_S).connect()
    release_directory(lock)
