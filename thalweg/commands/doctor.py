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
    """Check the installation and name a remedy for each fault.

    \b
    Example: thalweg doctor
    """
    from thalweg.doctor.doctor import examine
    from thalweg.terminal.show import show_diagnoses

    diagnoses = examine(settings_of(home=home))
    print_json([vars(diagnosis) for diagnosis in diagnoses]) if as_json else show_diagnoses(diagnoses)
    sys.exit(0 if all(diagnosis.ok for diagnosis in diagnoses) else 1)


COMMAND = doctor
