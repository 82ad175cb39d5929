"""What commands share: common options, settings from their flags, JSON for programs."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from thalweg.settings import Settings, load

HOME = click.option("--home", type=click.Path(path_type=Path), help="Data directory (THALWEG_HOME).")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


def print_json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode())


def print_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows with a header; NULL is empty, what is nested is JSON."""
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(columns)
    for row in rows:
        out.writerow(orjson.dumps(value, default=str).decode() if isinstance(value, list | dict) else value for value in row)


def settings_of(**flags: Any) -> Settings:
    """The settings with these flags over environment and file. Raises SettingsError."""
    return load(flags)
