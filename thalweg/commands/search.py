"""`thalweg search`: find what is remembered, and see why each hit was found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of, warn_of_gaps
from thalweg.commands.search_options import search_options
from thalweg.control.requests import ask


@click.command()
@click.argument("query")
@click.option(
    "--sessions",
    is_flag=True,
    help="Find sessions instead: each by its best records and by what all of them say together.",
)
@search_options
@HOME
@JSON
def search(query: str, sessions: bool, home: Path | None, as_json: bool, **options: Any) -> None:
    """Search what is remembered, through the running node.

    Each hit says which side found it, its rank there and the raw score. What is no longer valid is left out;
    `--valid-at` and `--as-of` ask for what was valid, or known, at another time.

    \b
    Example: thalweg search "sign of an offset" --kind Insight --as-of 2026-01-05
             thalweg search "when did we decide on the parser" --sessions
    """
    from thalweg.terminal.show_search import show_hits, show_sessions

    answer = ask(settings_of(home=home).home, "search", query=query, sessions=sessions, **options)
    warn_of_gaps(answer)
    if as_json:
        print_json(answer)
    else:
        (show_sessions if sessions else show_hits)(query, answer)


COMMAND = search
