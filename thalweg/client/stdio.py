"""`thalweg mcp`: finds the node and pumps to it. Imports next to nothing: an MCP client waits for the first answer."""

from __future__ import annotations

import sys
from pathlib import Path

from thalweg.client.node_process import node_command
from thalweg.client.pump import run as pump
from thalweg.environment import default_home, process_environment

USAGE = "usage: thalweg mcp [--home DIR]"


def run(arguments: list[str]) -> int:
    """Pump until stdin ends; the exit code."""
    home = process_environment().get("THALWEG_HOME", "")
    match arguments:
        case []:
            pass
        case ["--home", value]:
            home = value
        case _:
            print(f"thalweg: {' '.join(arguments)!r} is not understood.\n{USAGE}", file=sys.stderr)
            return 2
    directory = Path(home).expanduser() if home else default_home()
    return pump(directory.absolute(), node_command(directory.absolute()))
