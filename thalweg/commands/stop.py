"""`thalweg stop`: end the node."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.options import HOME, settings_of
from thalweg.control.requests import ask


@click.command()
@HOME
def stop(home: Path | None) -> None:
    """Stop the node; what was accepted is finished first.

    \b
    Example: thalweg stop
    """
    ask(settings_of(home=home).home, "stop")
    click.echo("The node stops.")


COMMAND = stop
