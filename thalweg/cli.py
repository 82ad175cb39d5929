"""The command line: each command asks the node or does one thing itself, and exits with 0, 1 or 2."""

from __future__ import annotations

import sys
from typing import Any, NoReturn

import click

from storage.disk import is_full
from streams.errors import Refused, SettingsError, ThalwegError
from thalweg.commands import find_commands


class Program(click.Group):
    """Turns the program's own errors into one sentence and exit code 1 or 2; a traceback is a bug."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except ThalwegError as error:
            fail(error)
        except Exception as error:
            if not is_full(error):
                raise
            click.echo(
                f"thalweg: The disk is full ({str(error).splitlines()[0]}). Make room, then try again.", err=True
            )
            sys.exit(1)


def fail(error: ThalwegError) -> NoReturn:
    """One line that says what is wrong and what to do. Usage and settings errors exit with 2, the rest with 1."""
    click.echo(f"thalweg: {error.message}", err=True)
    if error.remedy and not isinstance(error, Refused):
        click.echo(f"         {error.remedy}", err=True)
    sys.exit(2 if isinstance(error, SettingsError) else 1)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="thalweg")
def cli() -> None:
    """Agents' memory and telemetry as a stream.

    \b
    thalweg demo                          the main job on a bundled example
    claude mcp add thalweg -- thalweg mcp connect an agent
    thalweg sql "FROM sessions"           ask what the sessions did
    """


for command in find_commands():
    cli.add_command(command)
