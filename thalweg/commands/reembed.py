"""`thalweg reembed`: another model's vectors, built beside the ones that answer, then switched to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from streams.errors import NotRunning, Unavailable
from thalweg.commands.options import HOME, JSON, print_json, settings_of
from thalweg.control.requests import ask

LOAD_S = 1800.0
POLL_S = 0.2
RESTART_S = 60.0


@click.command()
@HOME
@click.option(
    "--model",
    help="minilm, minilm-float32, hashing, hashing-N, or the name or directory of a sentence-transformers model "
    "(needs thalweg[models]).",
)
@click.option("--no-wait", is_flag=True, help="Return at once; the node goes on by itself.")
@click.option("--drop-old", is_flag=True, help="Delete the vectors of every space that is kept and does not answer.")
@click.option("--drop", "space", metavar="SPACE", help="Delete one space that does not answer; ends its building.")
@JSON
def reembed(
    home: Path | None, model: str | None, no_wait: bool, drop_old: bool, space: str | None, as_json: bool
) -> None:
    """Change the embedding model without stopping. Without options: which spaces of vectors there are.

    The node embeds every text anew in the background and answers from the old space until the new one is whole; a
    node that is killed goes on where it was. The old space is kept until it is dropped.

    \b
    Example: thalweg reembed --model sentence-transformers/all-mpnet-base-v2
    """
    if sum((model is not None, drop_old, space is not None)) > 1:
        raise click.UsageError("Give one of --model, --drop-old and --drop.")
    place = settings_of(home=home).home
    if model is not None:
        target = ask(place, "reembed", model=model, timeout_s=LOAD_S)["space"]
        if not no_wait:
            _wait(place, target, quiet=as_json)
    elif drop_old or space is not None:
        dropped = ask(place, "drop_spaces", space=space)["dropped"]
        if not as_json:
            click.echo(f"Dropped: {', '.join(dropped)}." if dropped else "Nothing was dropped: there is no old space.")
    report = ask(place, "spaces")
    print_json(report) if as_json else _show(report)


def _wait(home: Path, target: str, *, quiet: bool) -> None:
    """Until the space answers, with a bar on a terminal. Raises Unavailable with what stopped it."""
    from thalweg.terminal.show import progress_bar

    with progress_bar(f"{target}", quiet=quiet) as show:
        gone_since: float | None = None
        while True:
            try:
                report = ask(home, "spaces")
                gone_since = None
            except (NotRunning, Unavailable):  # it may be started again, and goes on then
                gone_since = gone_since or time.monotonic()
                if time.monotonic() - gone_since > RESTART_S:
                    raise
                time.sleep(POLL_S)
                continue
            state = next((row["state"] for row in report["spaces"] if row["space"] == target), "unknown")
            if state == "live" and report["building"] is None:
                return
            if state == "dropped":
                raise Unavailable(f"{target} was dropped before it was whole.")
            if report["problem"]:
                raise Unavailable(report["problem"])
            if building := report["building"]:
                show(building["done"], building["total"])
            time.sleep(POLL_S)


def _show(report: dict[str, Any]) -> None:
    from thalweg.terminal.show import show_rows

    columns = ["space", "state", "vectors", "dim", "dtype", "pooling", "provider", "is_trained", "revision"]
    show_rows(columns, [[row[name] for name in columns] for row in report["spaces"]], "spaces of vectors")
    if building := report["building"]:
        click.echo(f"{building['space']}: {building['done']} of {building['total']} texts embedded.")
    if report["problem"]:
        click.echo(f"It has stopped: {report['problem']}")


COMMAND = reembed
