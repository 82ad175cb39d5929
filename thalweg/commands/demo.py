"""`thalweg demo`: the main job on the bundled example."""

from __future__ import annotations

from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json


@click.command()
@HOME
@JSON
@click.option("--broker", help="sqlite:///path/log.db (default) or kafka://host:port")
@click.option("--embedder", help="minilm, hashing or none.")
def demo(as_json: bool, **flags: Any) -> None:
    """Run the main job on the bundled example and print a report.

    Uses a data directory of its own unless --home is given.

    \b
    Example: thalweg demo
    """
    from thalweg.demo import run_demo

    report = run_demo(flags, quiet=as_json)
    if as_json:
        print_json(report)


COMMAND = demo
