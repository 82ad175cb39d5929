"""`thalweg sql`: analysts' questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from thalweg.commands.options import FRESHNESS, HOME, JSON, print_csv, print_json, settings_of, warn_of_gaps


@click.command()
@click.argument("query")
@HOME
@click.option(
    "--max-age",
    type=float,
    default=1.0,
    show_default=True,
    help="Reuse a snapshot that is at most this old, in seconds.",
)
@FRESHNESS
@click.option(
    "--timeout", "timeout_s", type=float, default=30.0, show_default=True, help="Seconds before the query is killed."
)
@click.option(
    "--max-rows", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True, help="Most rows to print."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["auto", "table", "records", "csv", "json"]),
    default="auto",
    show_default=True,
    help="auto: a table, or where its columns would be too narrow to read records.",
)
@JSON
def sql(
    query: str,
    home: Path | None,
    max_age: float,
    freshness: Any,
    timeout_s: float,
    max_rows: int,
    form: str,
    as_json: bool,
) -> None:
    """Run one read-only SQL statement over the analysts' schema (docs/tables.md).

    \b
    Example: thalweg sql "SELECT tool_name, calls, p95_ms FROM tool_call_latencies"
    """
    from storage.sql.run import run_sql
    from thalweg.process.store_access import snapshot_of
    from thalweg.terminal.show import show_rows

    snapshot = snapshot_of(settings_of(home=home), max_age, freshness)
    answer = run_sql(snapshot.path, query, timeout_s=timeout_s, max_rows=max_rows)
    if snapshot.waiting:
        click.echo(
            f"No node runs, and {snapshot.waiting} more records wait on the log: `thalweg up` applies them.", err=True
        )
    warn_of_gaps(snapshot.lacks)
    if form == "csv":
        print_csv(answer.columns, answer.rows)
    elif as_json or form == "json":
        names = ("columns", "types", "rows", "truncated", "elapsed_ms")
        print_json(
            {name: getattr(answer, name) for name in names} | {"snapshot_age_s": snapshot.age_s, **snapshot.lacks}
        )
    else:
        caption = f"{answer.elapsed_ms:.0f} ms, as of {snapshot.age_s:.1f} s ago" + (
            ", cut off" if answer.truncated else ""
        )
        show_rows(answer.columns, answer.rows, caption, as_records=None if form == "auto" else form == "records")


COMMAND = sql
