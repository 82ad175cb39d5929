"""Asking a node that ends meanwhile: a sentence, whatever the moment at which it went."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from streams.errors import NotRunning, Unavailable
from thalweg.control.requests import ask
from thalweg.paths import control_path


@pytest.fixture
def listener(tmp_path: Path) -> socket.socket:
    """What a node listens on, without a node behind it."""
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(control_path(tmp_path)))
    listening.listen()
    return listening


def test_a_node_that_is_killed_before_it_reads_the_question_is_said_to_have_ended(
    listener: socket.socket, tmp_path: Path
) -> None:
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(answer_of(tmp_path)))
    asking.start()
    connection, _ = listener.accept()
    connection.recv(1)  # it has asked, and the rest of the question is never read: the kernel resets such a connection
    connection.close()
    listener.close()
    asking.join()
    assert said == ["The node ended while it was asked for `status`."]
    assert answer_of(tmp_path).startswith("No node runs on ")


def test_a_node_that_is_killed_in_the_middle_of_its_answer_is_said_to_have_ended(
    listener: socket.socket, tmp_path: Path
) -> None:
    said: list[str] = []
    asking = threading.Thread(target=lambda: said.append(answer_of(tmp_path)))
    asking.start()
    connection, _ = listener.accept()
    connection.recv(1024)
    connection.sendall(b'{"ok": true, "status": "gr')
    connection.close()
    asking.join()
    listener.close()
    assert said == ["The node ended while it was asked for `status`."]


def answer_of(home: Path) -> str:
    try:
        return str(ask(home, "status"))
    except (NotRunning, Unavailable) as error:
        return error.message
