"""`thalweg export`: the tables for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of


@click.group()
def export() -> None:
    """Give the tables to other programs."""


@export.command()
@click.argument("directory", type=click.Path(path_type=Path))
@HOME
@JSON
def parquet(directory: Path, home: Path | None, as_json: bool) -> None:
    """Write every table and view as a Parquet file.

    \b
    Example: thalweg export parquet ./out
    """
    from thalweg.process.store_access import export_to
    from thalweg.terminal.show import show_rows

    rows = export_to(settings_of(home=home).home, directory.absolute())
    print_json(rows) if as_json else show_rows(
        ["file", "rows"], [[f"{name}.parquet", count] for name, count in rows.items()], str(directory)
    )


COMMAND = export
