"""`thalweg mcp`: MCP over stdio."""

from __future__ import annotations

from typing import Any

import click

from thalweg.commands.options import HOME


@click.command()
@click.option("--namespace", help="The namespace of this client; `auto`: that of the project it runs in.")
@click.option("--toolsets", help="Comma-separated toolsets that this client is served; without it all.")
@click.option("--read-only/--no-read-only", default=None, help="Serve this client only tools that read.")
@HOME
def mcp(**_: Any) -> None:
    """Serve MCP over stdio: a byte pump to the node, which it starts when none runs.

    What a client sees is its own: THALWEG_NAMESPACE, THALWEG_TOOLSETS and THALWEG_READ_ONLY in its environment say the
    same as the flags. One node serves all of them.

    \b
    Example: claude mcp add thalweg -- thalweg mcp --namespace auto --toolsets core
    """


COMMAND = mcp
