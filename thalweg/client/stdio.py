"""`thalweg mcp`: finds the node and pumps to it. Imports next to nothing: an MCP client waits for the first answer."""

from __future__ import annotations

import sys

from thalweg.client.node_process import node_command
from thalweg.client.pump import run as pump
from thalweg.client.scope import home_and_scope, read_options

USAGE = "usage: thalweg mcp [--home DIR] [--namespace NAME|auto] [--toolsets NAMES] [--read-only]"


def run(arguments: list[str]) -> int:
    """Pump until stdin ends; the exit code."""
    try:
        given, words = read_options(arguments)
        if words:
            raise ValueError(f"{words[0]!r} is not understood.")
    except ValueError as error:
        print(f"thalweg: {error}\n{USAGE}", file=sys.stderr)
        return 2
    home, scope = home_and_scope(given)
    return pump(home, node_command(home), scope)
