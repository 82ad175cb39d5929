"""`thalweg dlq`: dead letters."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of
from thalweg.control import ask


@click.group()
def dlq() -> None:
    """Dead letters: what could not be applied, and why."""


@dlq.command("list")
@HOME
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@JSON
def dlq_list(home: Path | None, limit: int, as_json: bool) -> None:
    """The newest dead letters with their reasons, also without a node.

    \b
    Example: thalweg dlq list
    """
    from thalweg.show import show_letters
    from thalweg.store_access import letters_of

    answer = letters_of(settings_of(home=home).home, limit)
    print_json(answer) if as_json else show_letters(answer)


@dlq.command("show")
@click.argument("letter_id")
@HOME
@JSON
def dlq_show(letter_id: str, home: Path | None, as_json: bool) -> None:
    """One dead letter with its bytes, as JSON in any case.

    \b
    Example: thalweg dlq show 6f1c9a52-…
    """
    print_json(ask(settings_of(home=home).home, "dlq_show", id=letter_id))


@dlq.command("replay")
@click.argument("letter_ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Replay every dead letter.")
@HOME
@JSON
def dlq_replay(letter_ids: tuple[str, ...], everything: bool, home: Path | None, as_json: bool) -> None:
    """Publish original records again after a fix; what was applied before changes nothing.

    \b
    Example: thalweg dlq replay --all
    """
    if bool(letter_ids) == everything:
        raise click.UsageError("Name dead letters, or give --all.")
    answer = ask(settings_of(home=home).home, "dlq_replay", ids=list(letter_ids), timeout_s=3600.0)
    if as_json:
        print_json(answer)
        return
    click.echo(f"Replayed {answer['replayed']}; {answer['left']} cannot be.")
    for reason in answer["reasons"]:
        click.echo(reason)


COMMAND = dlq
