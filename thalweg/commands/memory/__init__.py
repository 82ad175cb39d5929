"""`thalweg memory`: journal entries, ground truth, golden set and working memory, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of

FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
BECAUSE = click.option("--because", metavar="REASON", help="Why; it stays in the entry's history.")
NAMESPACE = click.option("--namespace", help="The namespace to work in.")


@click.group()
def memory() -> None:
    """Journal entries to correct; ground truth, golden set and working memory of Cognitive Memory."""


@memory.command("import-ground-truth")
@FILE
@HOME
@NAMESPACE
@JSON
def import_ground_truth(file: Path, as_json: bool, **flags: Any) -> None:
    """Import queries for the judges from JSON Lines: query, expected_docs, session_id, and id or metadata.

    \b
    Example: thalweg memory import-ground-truth truth.jsonl
    """
    from thalweg.commands.memory import files

    answer = files.import_ground_truth(settings_of(**flags), file)
    print_json(answer) if as_json else click.echo(f"{answer['read']} queries read, {answer['imported']} of them new.")


@memory.command("import-golden-set")
@FILE
@HOME
@NAMESPACE
@JSON
def import_golden_set(file: Path, as_json: bool, **flags: Any) -> None:
    """Import the golden test set from JSON Lines; it can be imported once.

    It has 50 to 100 queries: 40 % short, 40 % medium, 20 % long.

    \b
    Example: thalweg memory import-golden-set golden.jsonl
    """
    from thalweg.commands.memory import files

    answer = files.import_golden_set(settings_of(**flags), file)
    counts = f"{answer['short']} short, {answer['medium']} medium, {answer['long']} long"
    print_json(answer) if as_json else click.echo(f"{answer['imported']} queries imported: {counts}.")


@memory.command()
@click.argument("entry_id")
@click.argument("text")
@BECAUSE
@HOME
@NAMESPACE
@JSON
def correct(entry_id: str, text: str, because: str | None, as_json: bool, **flags: Any) -> None:
    """Correct a journal entry: searches find the new TEXT, which names the entry as its earlier one.

    TEXT `-` is read from the standard input.

    \b
    Example: thalweg memory correct journal-2026-01-05-042917530114 "The gateway listens on port 8443."
    """
    from thalweg.commands.memory import corrections

    content = click.get_text_stream("stdin").read() if text == "-" else text
    answer = corrections.correct(settings_of(**flags), entry_id, content, because)
    print_json(answer) if as_json else click.echo(f"{entry_id} is corrected to {answer['entry_id']}.")


@memory.command()
@click.argument("entry_id")
@BECAUSE
@HOME
@NAMESPACE
@JSON
def retract(entry_id: str, because: str | None, as_json: bool, **flags: Any) -> None:
    """Take a journal entry back: searches find neither it nor what was found in it; its history stays.

    \b
    Example: thalweg memory retract journal-2026-01-05-042917530114 --because "It was another gateway."
    """
    from thalweg.commands.memory import corrections

    answer = corrections.retract(settings_of(**flags), entry_id, because)
    print_json(answer) if as_json else click.echo(f"{entry_id} is retracted.")


@memory.command()
@click.argument("item_id", type=click.IntRange(1, 2**53 - 1))
@HOME
@NAMESPACE
@JSON
def archive(item_id: int, as_json: bool, **flags: Any) -> None:
    """Move an item of working memory to stale_memory, with the reason MANUAL_ARCHIVE.

    \b
    Example: thalweg memory archive 456
    """
    from thalweg.commands.memory import files

    answer = files.archive(settings_of(**flags), item_id)
    print_json(answer) if as_json else click.echo(f"Item {item_id} is archived as {answer['archived_id']}.")


@memory.command()
@HOME
@JSON
def agreement(as_json: bool, **flags: Any) -> None:
    """Report whether the judges agree enough for the ground truth to be accepted, and where they do not.

    \b
    Example: thalweg memory agreement
    """
    from thalweg.commands.memory import files

    answer = files.report(settings_of(**flags))
    if as_json:
        print_json(answer)
        return
    click.echo(answer["summary"])
    for line in answer["differing"]:
        click.echo(
            f"  query {line['query_id']}: means {line['judge1_score']:.2f} and {line['judge2_score']:.2f}, "
            f"kappa {line['kappa']:.2f}"
        )
    for line in answer["differing_documents"]:
        click.echo(f"  document {line['document_id']}: means {line['judge1_score']:.2f} and {line['judge2_score']:.2f}")
    if (test := answer["wilcoxon"]) is not None:
        advice = (
            "no judge is milder"
            if test["threshold"] is None
            else f"one judge is milder: a threshold of {test['threshold']:.2f} evens it out"
        )
        click.echo(f"  Wilcoxon over {test['n']} pairs: p {test['p']:.3f}, {advice}")


COMMAND = memory
