"""`thalweg mcp`: MCP over stdio."""

from __future__ import annotations

import click


@click.command()
def mcp() -> None:
    """Serve MCP over stdio: a byte pump to the node, which it starts when none runs.

    \b
    Example: claude mcp add thalweg -- thalweg mcp
    Options: --home DIR; everything else comes from THALWEG_* and thalweg.toml
    """


COMMAND = mcp
