"""`thalweg call`: one call of a tool, for shells and hooks."""

from __future__ import annotations

from typing import Any

import click

from thalweg.commands.options import HOME


@click.command()
@click.argument("tool")
@click.argument("json", required=False)
@click.option("--request-id", help="The id of the call: the same id again has one effect.")
@click.option("--freshness", metavar="TOKEN", help="Wait until this is applied: a write's `freshness`, in JSON.")
@click.option("--namespace", help="The namespace of the call; `auto`: that of the project it runs in.")
@click.option("--toolsets", help="Comma-separated toolsets; a tool of another one is unknown then.")
@click.option("--read-only/--no-read-only", default=None, help="Refuse a tool that writes.")
@HOME
def call(**_: Any) -> None:
    """Call one TOOL, and print the object that it answers as JSON. Starts the node when none runs.

    JSON is the object of its arguments, `-` reads it from standard input; without it the tool is given none. What the
    tool refuses is printed as JSON too, with its sentence on standard error and exit code 1; a tool that does not
    exist, and arguments that are no JSON, end with 2.

    \b
    Example: thalweg call journal_query '{"query": "why UTC"}' | jq .entries
    Example: jq -n --rawfile content notes.md '{$content}' | thalweg call journal_write -
    """


COMMAND = call
