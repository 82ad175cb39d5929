"""`thalweg snapshot`: a copy of the store."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.options import HOME, settings_of


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@HOME
def snapshot(file: Path, home: Path | None) -> None:
    """Copy tables and views into a DuckDB file of your own.

    \b
    Example: thalweg snapshot today.duckdb
    """
    from thalweg.store_access import copy_to

    copy_to(settings_of(home=home).home, file.absolute())
    click.echo(f"Written to {file}.")


COMMAND = snapshot
