"""What commands share: common options, settings from their flags, JSON for programs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

import click
import orjson

from streams.positions import NOW
from thalweg.settings import ROLES, Settings, load
from thalweg.status.last_node import disagreement

Command = TypeVar("Command", bound=Callable[..., Any])
_KINDS = {"float": click.FLOAT, "int": click.INT, "str": click.STRING}


class _Token(click.ParamType):
    """A freshness token in JSON, or `now`."""

    name = "TOKEN|now"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NOW or not isinstance(value, str):
            return value
        try:
            return orjson.loads(value)
        except ValueError:
            self.fail("neither `now` nor a token in JSON, as a write answers it.", param, ctx)


HOME = click.option("--home", type=click.Path(path_type=Path), help="Data directory (THALWEG_HOME).")
FRESHNESS = click.option(
    "--freshness",
    type=_Token(),
    help="Wait until this is applied, at most 30 s: a write's freshness token (JSON), "
    "or `now` for all that was accepted so far.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def setting_options(names: Sequence[str]) -> Callable[[Command], Command]:
    """A flag for each of these settings, with the setting's own help; a flag that is not given is None."""
    specs = {spec.name: spec for spec in fields(Settings)}

    def add(command: Command) -> Command:
        for name in reversed(names):
            flag = f"--{name.replace('_', '-')}"
            declared = f"{flag}/--no-{flag.removeprefix('--')}" if specs[name].type == "bool" else flag
            kind = _KINDS.get(str(specs[name].type)) if name != "role" else click.Choice(ROLES)
            command = click.option(declared, type=kind, default=None, help=specs[name].metadata["help"])(command)
        return command

    return add


def warn_of_gaps(answer: Mapping[str, Any]) -> None:
    """Print to standard error what an answer lacks: freshness, records, vectors; a line each."""
    if answer.get("stale"):
        click.echo("The answer is older than it should be: `thalweg status` says what is behind.", err=True)
    if behind := answer.get("behind"):
        click.echo(
            f"The node is behind the log: it lacks {behind['records']} records, "
            f"the oldest for {behind['seconds']:.0f} s.",
            err=True,
        )
    if count := answer.get("embedding_behind"):
        click.echo(f"{count} events have no vectors yet: what they remember is found by its words only.", err=True)


def print_json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode())


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows with a header; NULL is empty, what is nested is JSON."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(columns)
    for row in rows:
        out.writerow(
            orjson.dumps(value, default=str).decode() if isinstance(value, list | dict) else value for value in row
        )


def settings_of(**flags: Any) -> Settings:
    """The settings with these flags over environment and file. Raises SettingsError.

    A line on standard error says when the log is not that of the last node.
    """
    settings = load(flags)
    if other := disagreement(settings.home, settings.broker_url):
        click.echo(f"note: {other}", err=True)
    return settings
