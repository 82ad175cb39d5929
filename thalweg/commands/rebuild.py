"""`thalweg rebuild`: indexes, or everything from the log."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of


@click.command()
@click.option(
    "--from-log", is_flag=True, help="Delete the store first and replay the whole log, which has to hold all of it."
)
@HOME
@JSON
def rebuild(from_log: bool, home: Path | None, as_json: bool) -> None:
    """Rebuild the indexes from DuckDB or, with --from-log, DuckDB and the indexes from the log.

    \b
    Example: thalweg rebuild --from-log
    """
    from thalweg.process.rebuild import rebuild_store
    from thalweg.terminal.show import show_rows

    report = rebuild_store(settings_of(home=home), from_log=from_log)
    print_json(report) if as_json else show_rows(
        ["what", "value"], [[name, value] for name, value in report.items()], "rebuilt", count=False
    )


COMMAND = rebuild
