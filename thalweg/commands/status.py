"""`thalweg status`: how far each part is."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from streams.errors import NotRunning
from thalweg.commands.options import HOME, JSON, print_json, settings_of
from thalweg.control.requests import ask


@click.command()
@HOME
@JSON
def status(home: Path | None, as_json: bool) -> None:
    """Show how far each part is; without a node, what is known of the last one.

    Exit code 1 when anything is behind, stuck or dead.

    \b
    Example: thalweg status --json
    """
    from thalweg.terminal.show import show_status

    settings = settings_of(home=home)
    try:
        report = ask(settings.home, "status")
    except NotRunning:
        from thalweg.status.offline import offline_status

        report = offline_status(settings.home, settings.broker_url)
    print_json(report) if as_json else show_status(report)
    sys.exit(0 if report["status"] == "green" else 1)


COMMAND = status
