"""Starts a node for the pump and for commands that work through one. Light enough for the pump to import."""

from __future__ import annotations

import sys
from pathlib import Path

from streams.errors import NodeDown
from thalweg.client.launch import Launcher, NodeError
from thalweg.environment import process_environment

IDLE_EXIT_S = "900"
"""A node that a client started ends this many seconds after its last client has left."""


def node_command(home: Path) -> list[str]:
    """The command that starts a node on this data directory. The environment and thalweg.toml say the rest."""
    idle = process_environment().get("THALWEG_IDLE_EXIT_S", IDLE_EXIT_S)
    return [sys.executable, "-m", "thalweg", "up", "--home", str(home), "--idle-exit-s", idle]


def ensure_node(home: Path, extra: tuple[str, ...] = ()) -> None:
    """Return once a node answers on this data directory. Raises NodeDown with the end of its log."""
    try:
        Launcher(home, [*node_command(home), *extra]).connect().close()
    except NodeError as error:
        raise NodeDown(str(error)) from None
