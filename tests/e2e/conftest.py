"""Fixtures of the whole program's tests: a running node, and the command line on its data directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.program import Program
from tests.node_process import NodeProcess
from thalweg.paths import socket_path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def thalweg(home: Path, broker_url: str | None) -> Iterator[Program]:
    """The command line; a node that one of its commands has started is stopped at the end."""
    program = Program(home, broker_url)
    yield program
    if socket_path(home).exists():
        program("stop")


@pytest.fixture
def node(home: Path, broker_url: str | None) -> Iterator[NodeProcess]:
    """A node that answers."""
    node = NodeProcess(home, broker_url)
    node.start()
    yield node
    node.stop()
