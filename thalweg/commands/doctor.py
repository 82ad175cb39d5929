"""`thalweg doctor`: check the installation."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of


@click.command()
@HOME
@JSON
def doctor(home: Path | None, as_json: bool) -> None:
    """Check the installation and say the remedy for what is wrong.

    \b
    Example: thalweg doctor
    """
    from thalweg.status.doctor import examine
    from thalweg.terminal.show import show_checks

    checks = examine(settings_of(home=home))
    print_json([vars(check) for check in checks]) if as_json else show_checks(checks)
    sys.exit(0 if all(check.ok for check in checks) else 1)


COMMAND = doctor
