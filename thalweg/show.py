"""What people see in the terminal: tables in plain columns, red and green only where they mean something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

COLOURS = {"ok": "green", "green": "green", "working": "cyan", "behind": "red", "stuck": "red", "red": "red", "dead": "red"}
MAX_CELL = 120


def console() -> Console:
    """Standard output; without colours when it is not a terminal."""
    return Console(soft_wrap=False)


def show_rows(columns: Sequence[str], rows: Sequence[Sequence[Any]], caption: str) -> None:
    """Rows as a table, numbers to the right, with a line under it."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for number, name in enumerate(columns):
        is_number = bool(rows) and all(isinstance(row[number], int | float) for row in rows if row[number] is not None)
        table.add_column(name, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(cell(value) for value in row))
    out = console()
    out.print(table)
    out.print(f"[dim]{len(rows)} {'row' if len(rows) == 1 else 'rows'}{', ' + caption if caption else ''}[/dim]")


def cell(value: Any) -> str:
    """A value in a table: nothing for NULL, numbers short, long text cut."""
    if value is None:
        return "[dim]–[/dim]"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…"
    return text.replace("[", "\\[")


def coloured(state: str) -> str:
    colour = COLOURS.get(state)
    return f"[{colour}]{state}[/{colour}]" if colour else state


def show_status(report: dict[str, Any]) -> None:
    """The node's health: what is wrong first, then each part."""
    out = console()
    out.print(f"thalweg is {coloured(report['status'])}" + (f" on {report['home']}, {report['broker']}" if "home" in report else ""))
    for problem in report["problems"]:
        out.print(f"  [red]•[/red] {cell(problem)}")
    if "home" not in report:
        return
    parts = [["topic", name, part] for name, part in report["topics"].items()]
    parts += [["stage", name, part] for name, part in report["stages"].items()]
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "part", "state", "applied", "lag", "processed", "buried"):
        table.add_column(name, justify="right" if name in ("applied", "lag", "processed", "buried") else "left")
    for kind, name, part in parts:
        numbers = (cell(part.get(key)) for key in ("applied", "lag", "processed", "buried"))
        table.add_row(kind, name, coloured(str(part.get("state", ""))), *numbers)
    for name in ("keyword", "vector"):
        index = report["indexes"][name]
        state = "ok" if index["state"] == "ready" else index["state"]
        table.add_row("index", name, coloured(state), cell(index.get("count")), "", "", "")
    out.print(table)
    embedder = report["embedder"]
    model = f"{embedder['model_id']} ({'trained' if embedder['trained'] else 'untrained'})" if embedder else "none: keyword search only"
    letters = sum(report["dead_letters"].values())
    out.print(f"[dim]embedder {model}; {letters} dead letters; {report['clients']} clients[/dim]")


def show_checks(checks: Sequence[Any]) -> None:
    """The doctor's findings, each failing one with its remedy."""
    out = console()
    for check in checks:
        out.print(f"[{'green' if check.ok else 'red'}]{'✓' if check.ok else '✗'}[/] {check.name}: {cell(check.detail)}")
        if not check.ok and check.remedy:
            out.print(f"  → {cell(check.remedy)}")


def show_import(report: dict[str, Any]) -> None:
    """What an import did."""
    rate = report["events"] / report["seconds"] if report["seconds"] else 0.0
    rows = [[report[name] for name in ("files", "lines", "events", "unreadable", "records")] + [round(report["seconds"], 2), round(rate)]]
    caption = "all applied" if report["applied"] else "not all applied yet: `thalweg status` says how far"
    show_rows(["files", "lines", "events", "unreadable", "records", "seconds", "events/s"], rows, caption)
    if report["unreadable"]:
        console().print("[yellow]Unreadable lines are dead letters: `thalweg dlq list` says why.[/yellow]")


def show_letters(answer: dict[str, Any]) -> None:
    """Dead letters with their reasons."""
    names = ("dead_letter_id", "topic", "partition", "offset", "stage", "error_type", "error_message")
    rows = [[letter[name] for name in names] for letter in answer["dead_letters"]]
    show_rows(list(names), rows, f"{answer['total']} in all")
