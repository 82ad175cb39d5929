"""`thalweg hook`: what a client gives its hook becomes telemetry."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from thalweg.commands.options import HOME


@click.command()
@click.argument("event")
@HOME
@click.option("--namespace", help="The namespace of the session.")
def hook(event: str, home: Path | None, namespace: str | None) -> None:
    """Publish a client's hook event, read from stdin as JSON.

    At a session's end its transcript is imported too. Exit code 0, or 1 with a sentence; never 2, by which a hook
    forbids what its client is about to do.

    \b
    Example: echo '{"session_id": "s1", "hook_event_name": "Stop"}' | thalweg hook Stop
    """
    from thalweg.client.hook import run

    options = [("--home", home), ("--namespace", namespace)]
    sys.exit(run([event, *(f"{name}={value}" for name, value in options if value is not None)]))


COMMAND = hook
