"""`thalweg dlq`: dead letters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of
from thalweg.control.requests import ask

STATE = click.option(
    "--state",
    "states",
    type=click.Choice(["new", "replayed", "solved", "dropped"]),
    multiple=True,
    help="Letters in this state; may be given again.",
)
_FILTERS = (
    click.option("--namespace", help="Letters of this namespace (the record's key)."),
    click.option("--source", help="Letters of this CloudEvents source."),
    click.option("--type", "event_type", help="Letters of this event type."),
    click.option("--reason", help="Letters whose reason contains this text."),
    click.option("--since", help="Letters that failed at this time (UTC) or later."),
    click.option("--until", help="Letters that failed before this time (UTC)."),
)


def filtered(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which letters are chosen."""
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def _request(chosen: dict[str, Any]) -> dict[str, Any]:
    """The options as the node reads them, those that were given."""
    named = {"type": chosen.pop("event_type", None), "states": list(chosen.pop("states", ())), **chosen}
    return {name: value for name, value in named.items() if value}


def _check_chosen(letter_ids: tuple[str, ...], everything: bool, chosen: dict[str, Any]) -> None:
    if bool(letter_ids) == everything or (letter_ids and chosen):
        raise click.UsageError("Name dead letters, or give --all and filters.")


@click.group()
def dlq() -> None:
    """Dead letters: what could not be applied, and why."""


@dlq.command("list")
@HOME
@STATE
@filtered
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Most letters to list.")
@JSON
def dlq_list(home: Path | None, limit: int, as_json: bool, **chosen: Any) -> None:
    """List the newest dead letters, a line each, also without a node.

    Without --state those that are new or replayed in vain.

    \b
    Example: thalweg dlq list --state new --reason category
    """
    from thalweg.control.dead_letters import OPEN
    from thalweg.process.store_access import letters_of
    from thalweg.terminal.show import show_letters

    answer = letters_of(settings_of(home=home).home, limit=limit, **{"states": list(OPEN), **_request(chosen)})
    print_json(answer) if as_json else show_letters(answer)


@dlq.command("show")
@click.argument("letter_id")
@HOME
@JSON
def dlq_show(letter_id: str, home: Path | None, as_json: bool) -> None:
    """Print one dead letter with its bytes, always as JSON.

    \b
    Example: thalweg dlq show 6f1c9a52-…
    """
    print_json(ask(settings_of(home=home).home, "dlq_show", id=letter_id))


@dlq.command("replay")
@click.argument("letter_ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Replay every new letter that fits the filters.")
@HOME
@STATE
@filtered
@JSON
def dlq_replay(letter_ids: tuple[str, ...], everything: bool, home: Path | None, as_json: bool, **chosen: Any) -> None:
    """Publish original records again after a fix; what was applied before changes nothing.

    \b
    Example: thalweg dlq replay --all
    """
    filters = _request(chosen)
    _check_chosen(letter_ids, everything, filters)
    answer = ask(settings_of(home=home).home, "dlq_replay", ids=list(letter_ids), timeout_s=3600.0, **filters)
    if as_json:
        print_json(answer)
        return
    click.echo(f"Replayed {answer['replayed']}; {answer['left']} cannot be replayed.")
    for reason in answer["reasons"]:
        click.echo(reason)


@dlq.command("drop")
@click.argument("letter_ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Drop every new or replayed letter that fits the filters.")
@click.option("--because", required=True, help="Why; kept with the letters.")
@HOME
@STATE
@filtered
@JSON
def dlq_drop(
    letter_ids: tuple[str, ...], everything: bool, because: str, home: Path | None, as_json: bool, **chosen: Any
) -> None:
    """Give up on letters: they no longer count as open. Their bytes stay on the log.

    \b
    Example: thalweg dlq drop --all --source urn:test --because "records of a load test"
    """
    filters = _request(chosen)
    _check_chosen(letter_ids, everything, filters)
    answer = ask(
        settings_of(home=home).home, "dlq_drop", ids=list(letter_ids), because=because, timeout_s=3600.0, **filters
    )
    if as_json:
        print_json(answer)
        return
    letters = "letter" if answer["dropped"] == 1 else "letters"
    click.echo(f"Dropped {answer['dropped']} {letters}.")


COMMAND = dlq
