"""`thalweg tools`: what agents see."""

from __future__ import annotations

import click

from thalweg.commands.options import JSON, print_json


@click.command()
@click.option("--toolsets", help="Comma-separated toolsets.")
@JSON
def tools(toolsets: str | None, as_json: bool) -> None:
    """List the tools that agents see.

    \b
    Example: thalweg tools --json
    """
    from mcp_ingress.inventory import find_tools
    from thalweg.terminal.show import show_rows

    found = find_tools().select(toolsets.split(",") if toolsets else None)
    if as_json:
        print_json(
            [
                {
                    "name": t.name,
                    "toolset": t.toolset,
                    "kind": t.kind,
                    "description": t.description,
                    "input_schema": t.input_schema,
                }
                for t in found
            ]
        )
    else:
        show_rows(
            ["tool", "toolset", "kind", "what it does"],
            [[t.name, t.toolset, t.kind, t.description.split(". ")[0]] for t in found],
            "",
        )


COMMAND = tools
