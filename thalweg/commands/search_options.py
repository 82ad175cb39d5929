"""The filters that `thalweg search` and `thalweg why` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from thalweg.client.project import namespace_of
from thalweg.commands.options import FRESHNESS
from thalweg.environment import process_environment


def _namespace(_: click.Context, __: click.Parameter, value: str | None) -> str | None:
    name = value or process_environment().get("THALWEG_NAMESPACE")
    return namespace_of(name) if name else None


OPTIONS = (
    click.option("--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="Most hits to return."),
    click.option(
        "--namespace",
        callback=_namespace,
        help="Namespace to look in, `auto` for this project's; default: THALWEG_NAMESPACE, else the node's.",
    ),
    click.option("--kind", "kinds", multiple=True, help="Only this kind (Insight, JournalEntry …); may be repeated."),
    click.option("--toolset", "toolsets", multiple=True, help="Only what this toolset remembers; may be repeated."),
    click.option("--session", "session_ids", multiple=True, help="Only this session; may be repeated."),
    click.option("--domain", "domains", multiple=True, help="Only this domain; may be repeated."),
    click.option("--tag", "tags", multiple=True, help="Only what has this domain or category; may be repeated."),
    click.option(
        "--entity",
        "entities",
        multiple=True,
        help="Only this record, what is related to it and what it was found in; may be repeated.",
    ),
    click.option("--from", "created_from", help="Only what was made at or after this date or time (UTC)."),
    click.option("--before", "created_before", help="Only what was made before this date or time (UTC)."),
    click.option("--valid-at", help="What was valid at this date or time (valid time)."),
    FRESHNESS,
    click.option("--as-of", "known_at", help="As it was known at this date or time (transaction time)."),
)


def search_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options, in this order."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command
