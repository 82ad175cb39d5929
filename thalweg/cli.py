"""The command line. Each command asks the node, or does one thing of its own; every one has an example and exit codes 0, 1, 2."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import click
import orjson

from processors.telemetry.formats import FORMATS
from streams.errors import Refused, SettingsError, ThalwegError
from thalweg.bench.command import bench
from thalweg.control import NotRunning, ask
from thalweg.settings import Settings, load

HOME = click.option("--home", type=click.Path(path_type=Path), help="Data directory (THALWEG_HOME).")
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")


class Program(click.Group):
    """Turns the program's own errors into one sentence and exit code 1 or 2; a traceback is a bug."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except ThalwegError as error:
            fail(error)


def fail(error: ThalwegError) -> NoReturn:
    """One line that says what is wrong and what to do. Usage and settings errors exit with 2, the rest with 1."""
    click.echo(f"thalweg: {error.message}", err=True)
    if error.remedy and not isinstance(error, Refused):
        click.echo(f"         {error.remedy}", err=True)
    sys.exit(2 if isinstance(error, SettingsError) else 1)


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="thalweg")
def cli() -> None:
    """Agents' memory and telemetry as a stream.

    \b
    thalweg demo                          the main job on a bundled example
    claude mcp add thalweg -- thalweg mcp connect an agent
    thalweg sql "FROM sessions"           ask what the sessions did
    """


def print_json(value: Any) -> None:
    click.echo(orjson.dumps(value, option=orjson.OPT_INDENT_2, default=str).decode())


def _settings(**flags: Any) -> Settings:
    return load(flags)


@cli.command()
@HOME
@click.option("--broker", help="sqlite:///path/log.db (default) or kafka://host:port")
@click.option("--role", type=click.Choice(["all", "ingress"]), help="Which parts this process runs.")
@click.option("--http", help="PORT or HOST:PORT for streamable HTTP.")
@click.option("--embedder", help="minilm, hashing, none or a model name.")
@click.option("--namespace", help="The namespace of this node's callers.")
@click.option("--toolsets", help="Comma-separated toolsets to serve.")
@click.option("--read-only/--no-read-only", default=None, help="Serve only tools that read.")
@click.option("--idle-exit-s", type=float, help="End after so many seconds without a client.")
def up(**flags: Any) -> None:
    """Run the node in the foreground until it is stopped.

    \b
    Example: thalweg up --http 7733
    """
    from thalweg.serve import serve

    sys.exit(serve(_settings(**flags)))


@cli.command()
@HOME
def stop(home: Path | None) -> None:
    """Stop the node; what was accepted is finished first.

    \b
    Example: thalweg stop
    """
    ask(_settings(home=home).home, "stop")
    click.echo("The node stops.")


@cli.command()
@HOME
@JSON
def status(home: Path | None, as_json: bool) -> None:
    """How far each part is. Exit code 1 when anything is behind, stuck or dead.

    \b
    Example: thalweg status --json
    """
    from thalweg.show import show_status

    try:
        report = ask(_settings(home=home).home, "status")
    except NotRunning as error:
        report = {"status": "red", "problems": [error.message]}
    print_json(report) if as_json else show_status(report)
    sys.exit(0 if report["status"] == "green" else 1)


@cli.command()
@HOME
@JSON
def doctor(home: Path | None, as_json: bool) -> None:
    """Check the installation and say the remedy for what is wrong.

    \b
    Example: thalweg doctor
    """
    from thalweg.doctor import examine
    from thalweg.show import show_checks

    checks = examine(_settings(home=home))
    print_json([vars(check) for check in checks]) if as_json else show_checks(checks)
    sys.exit(0 if all(check.ok for check in checks) else 1)


@cli.command()
@HOME
@JSON
@click.option("--broker", help="sqlite:///path/log.db (default) or kafka://host:port")
@click.option("--embedder", help="minilm, hashing or none.")
def demo(as_json: bool, **flags: Any) -> None:
    """The main job on the bundled example, with a report. Uses a data directory of its own unless --home is given.

    \b
    Example: thalweg demo
    """
    from thalweg.demo import run_demo

    report = run_demo(flags, quiet=as_json)
    if as_json:
        print_json(report)


@cli.command("import")
@click.argument("kind", type=click.Choice(list(FORMATS)))
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@HOME
@click.option("--namespace", help="The namespace to import into.")
@JSON
def import_(kind: str, paths: tuple[Path, ...], as_json: bool, **flags: Any) -> None:
    """Import files or directories; importing again changes nothing. Starts the node when none runs.

    \b
    Example: thalweg import claude-code ~/.claude/projects
    """
    from thalweg.import_command import run_import
    from thalweg.show import show_import

    report = run_import(_settings(**flags), kind, list(paths), quiet=as_json)
    print_json(report) if as_json else show_import(report)


@cli.command()
@click.argument("query")
@HOME
@click.option("--max-age", type=float, default=1.0, show_default=True, help="Reuse a snapshot that is at most this old, in seconds.")
@click.option("--timeout", "timeout_s", type=float, default=30.0, show_default=True, help="Seconds before the query is killed.")
@click.option("--max-rows", type=click.IntRange(1, 1_000_000), default=10_000, show_default=True)
@JSON
def sql(query: str, home: Path | None, max_age: float, timeout_s: float, max_rows: int, as_json: bool) -> None:
    """One read-only SQL statement over the analysts' schema (docs/tables.md).

    \b
    Example: thalweg sql "SELECT tool_name, calls, p95_ms FROM tool_call_latencies"
    """
    from storage.sql.run import run_sql
    from thalweg.show import show_rows
    from thalweg.store_access import snapshot_of

    snapshot, age_s = snapshot_of(_settings(home=home).home, max_age)
    answer = run_sql(snapshot, query, timeout_s=timeout_s, max_rows=max_rows)
    if as_json:
        names = ("columns", "types", "rows", "truncated", "elapsed_ms")
        print_json({name: getattr(answer, name) for name in names} | {"snapshot_age_s": age_s})
    else:
        show_rows(
            answer.columns, answer.rows, f"{answer.elapsed_ms:.0f} ms, as of {age_s:.1f} s ago" + (", cut off" if answer.truncated else "")
        )


@cli.group()
def export() -> None:
    """Give the tables to other programs."""


@export.command()
@click.argument("directory", type=click.Path(path_type=Path))
@HOME
@JSON
def parquet(directory: Path, home: Path | None, as_json: bool) -> None:
    """Every table and view as a Parquet file.

    \b
    Example: thalweg export parquet ./out
    """
    from thalweg.show import show_rows
    from thalweg.store_access import export_to

    rows = export_to(_settings(home=home).home, directory.absolute())
    print_json(rows) if as_json else show_rows(
        ["file", "rows"], [[f"{name}.parquet", count] for name, count in rows.items()], str(directory)
    )


@cli.command()
@click.argument("file", type=click.Path(path_type=Path))
@HOME
def snapshot(file: Path, home: Path | None) -> None:
    """Copy tables and views into a DuckDB file of your own.

    \b
    Example: thalweg snapshot today.duckdb
    """
    from thalweg.store_access import copy_to

    copy_to(_settings(home=home).home, file.absolute())
    click.echo(f"Written to {file}.")


@cli.command()
@click.option("--toolsets", help="Comma-separated toolsets.")
@JSON
def tools(toolsets: str | None, as_json: bool) -> None:
    """The tools that agents see.

    \b
    Example: thalweg tools --json
    """
    from mcp_ingress.inventory import find_tools
    from thalweg.show import show_rows

    found = find_tools().select(toolsets.split(",") if toolsets else None)
    if as_json:
        print_json(
            [
                {"name": t.name, "toolset": t.toolset, "kind": t.kind, "description": t.description, "input_schema": t.input_schema}
                for t in found
            ]
        )
    else:
        show_rows(
            ["tool", "toolset", "kind", "what it does"], [[t.name, t.toolset, t.kind, t.description.split(". ")[0]] for t in found], ""
        )


@cli.group()
def dlq() -> None:
    """Dead letters: what could not be applied, and why."""


@dlq.command("list")
@HOME
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@JSON
def dlq_list(home: Path | None, limit: int, as_json: bool) -> None:
    """The newest dead letters with their reasons.

    \b
    Example: thalweg dlq list
    """
    from thalweg.show import show_letters

    answer = ask(_settings(home=home).home, "dlq_list", limit=limit)
    print_json(answer) if as_json else show_letters(answer)


@dlq.command("show")
@click.argument("letter_id")
@HOME
def dlq_show(letter_id: str, home: Path | None) -> None:
    """One dead letter with its original bytes.

    \b
    Example: thalweg dlq show 6f1c9a52-…
    """
    print_json(ask(_settings(home=home).home, "dlq_show", id=letter_id))


@dlq.command("replay")
@click.argument("letter_ids", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Replay every dead letter.")
@HOME
def dlq_replay(letter_ids: tuple[str, ...], everything: bool, home: Path | None) -> None:
    """Publish original records again after a fix; what was applied before changes nothing.

    \b
    Example: thalweg dlq replay --all
    """
    if bool(letter_ids) == everything:
        raise click.UsageError("Name dead letters, or give --all.")
    answer = ask(_settings(home=home).home, "dlq_replay", ids=list(letter_ids))
    click.echo(f"Replayed {answer['replayed']}; {answer['left']} are still unreadable.")


@cli.command()
@click.option("--from-log", is_flag=True, help="Delete the store first and replay the whole log.")
@HOME
@JSON
def rebuild(from_log: bool, home: Path | None, as_json: bool) -> None:
    """Rebuild the indexes from DuckDB or, with --from-log, DuckDB and the indexes from the log.

    \b
    Example: thalweg rebuild --from-log
    """
    from thalweg.rebuild import rebuild_store
    from thalweg.show import show_rows

    report = rebuild_store(_settings(home=home), from_log=from_log)
    print_json(report) if as_json else show_rows(["what", "value"], [[name, value] for name, value in report.items()], "rebuilt")


@cli.group()
def topics() -> None:
    """The topics of the log."""


@topics.command()
@HOME
@click.option("--broker", help="sqlite:///path/log.db or kafka://host:port")
def create(**flags: Any) -> None:
    """Create the missing topics.

    \b
    Example: thalweg topics create --broker kafka://localhost:9092
    """
    from thalweg.topics_command import create_topics

    created = create_topics(_settings(**flags))
    click.echo("\n".join(created) if created else "All topics exist.")


@topics.command()
@JSON
@click.option("--asyncapi", is_flag=True, help="Print the AsyncAPI document.")
def describe(as_json: bool, asyncapi: bool) -> None:
    """What each topic carries.

    \b
    Example: thalweg topics describe --asyncapi
    """
    from streams.asyncapi import asyncapi_document
    from streams.topics import TOPICS
    from thalweg.show import show_rows

    if asyncapi:
        print_json(asyncapi_document())
    elif as_json:
        print_json([vars(topic) for topic in TOPICS])
    else:
        show_rows(
            ["topic", "partitions", "key", "retention", "carries"],
            [[t.name, t.partitions, t.key, t.retention, t.carries] for t in TOPICS],
            "",
        )


@cli.command()
def mcp() -> None:
    """Serve MCP over stdio: a byte pump to the node, which it starts when none runs.

    \b
    Example: claude mcp add thalweg -- thalweg mcp
    Options: --home DIR; everything else comes from THALWEG_* and thalweg.toml
    """


cli.add_command(bench)
