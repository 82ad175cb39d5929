"""`thalweg why`: why a known record, or session, is, or is not, among the results of a search."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of, warn_of_gaps
from thalweg.commands.search_options import search_options
from thalweg.control.requests import ask


@click.command()
@click.argument("record_id")
@click.option("--query", required=True, help="The search that should have found it.")
@search_options
@HOME
@JSON
def why(record_id: str, query: str, home: Path | None, as_json: bool, **options: Any) -> None:
    """Say why a search returns a record or does not.

    It names filters, merges, ranks on each side, floors, and what is not embedded yet. Of a session it says why it is,
    or is not, among what `thalweg search --sessions` finds.

    \b
    Example: thalweg why 0b7c… --query "sign of an offset"
             thalweg why 2026-01-05-parser --query "sign of an offset"
    """
    from thalweg.terminal.show_search import show_why

    answer = ask(settings_of(home=home).home, "why", record_id=record_id, query=query, **options)
    warn_of_gaps(answer)
    print_json(answer) if as_json else show_why(answer)


COMMAND = why
