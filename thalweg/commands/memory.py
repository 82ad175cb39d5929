"""`thalweg memory`: ground truth, golden set and working memory, by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thalweg.commands.options import HOME, JSON, print_json, settings_of

FILE = click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
NAMESPACE = click.option("--namespace", help="The namespace to work in.")


@click.group()
def memory() -> None:
    """Ground truth, golden set and working memory of Cognitive Memory."""


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
    from thalweg.cognitive import memory_files

    found = memory_files.import_ground_truth(settings_of(**flags), file)
    print_json(found) if as_json else click.echo(f"{found['read']} queries read, {found['imported']} of them new.")


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
    from thalweg.cognitive import memory_files

    found = memory_files.import_golden_set(settings_of(**flags), file)
    counts = f"{found['short']} short, {found['medium']} medium, {found['long']} long"
    print_json(found) if as_json else click.echo(f"{found['imported']} queries imported: {counts}.")


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
    from thalweg.cognitive import memory_files

    found = memory_files.archive(settings_of(**flags), item_id)
    print_json(found) if as_json else click.echo(f"Item {item_id} is archived as {found['archived_id']}.")


@memory.command()
@HOME
@JSON
def agreement(as_json: bool, **flags: Any) -> None:
    """Whether the judges agree enough for the ground truth to be accepted, and where they do not.

    \b
    Example: thalweg memory agreement
    """
    from thalweg.cognitive import memory_files

    found = memory_files.report(settings_of(**flags))
    if as_json:
        print_json(found)
        return
    click.echo(found["summary"])
    for line in found["differing"]:
        click.echo(
            f"  query {line['query_id']}: means {line['judge1_score']:.2f} and {line['judge2_score']:.2f}, "
            f"kappa {line['kappa']:.2f}"
        )
    for line in found["differing_documents"]:
        click.echo(f"  document {line['document_id']}: means {line['judge1_score']:.2f} and {line['judge2_score']:.2f}")
    if (test := found["wilcoxon"]) is not None:
        advice = (
            "no judge is milder"
            if test["threshold"] is None
            else f"one judge is milder: a threshold of {test['threshold']:.2f} evens it out"
        )
        click.echo(f"  Wilcoxon over {test['n']} pairs: p {test['p']:.3f}, {advice}")


COMMAND = memory
