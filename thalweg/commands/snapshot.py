"""`thalweg snapshot`: a copy of the store."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@HOME
@JSON
def snapshot(file: Path, home: Path | None, as_json: bool) -> None:
    """Copy tables and views into a DuckDB file of your own.

    \b
    Example: thalweg snapshot today.duckdb
    """
    from thalweg.process.store_access import copy_to

    copy_to(settings_of(home=home).home, file.absolute())
    print_json({"file": str(file.absolute()), "bytes": file.stat().st_size}) if as_json else click.echo(
        f"Written to {file}."
    )


COMMAND = snapshot
