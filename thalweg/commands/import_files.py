"""`thalweg import`: files of other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from processors.telemetry.formats.catalogue import FORMATS
from thalweg.commands.options import HOME, JSON, print_json, settings_of


@click.command("import")
@click.argument("kind", type=click.Choice(list(FORMATS)))
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@HOME
@click.option("--namespace", help="The namespace to import into.")
@JSON
def import_(kind: str, paths: tuple[Path, ...], as_json: bool, **flags: Any) -> None:
    """Import files or directories; importing again changes nothing. Starts the node when none runs.

    \b
    Example: thalweg import claude-code ~/.claude/projects
    """
    from thalweg.importing.command import run_import
    from thalweg.terminal.show import show_import

    report = run_import(settings_of(**flags), kind, list(paths), quiet=as_json)
    print_json(report) if as_json else show_import(report)


COMMAND = import_
