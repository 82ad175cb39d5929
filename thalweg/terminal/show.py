"""What people see in the terminal: plain tables, with red and green only where they mean something."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

COLOURS = {
    "ok": "green",
    "green": "green",
    "working": "cyan",
    "behind": "red",
    "stuck": "red",
    "red": "red",
    "dead": "red",
}
MAX_CELL = 120
READABLE = 16
"""Cells of a column in which a long text still reads."""
SIGNS = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: 0x2421,
    **dict.fromkeys((*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)), 0xFFFD),
}
"""Control characters and overrides of the direction of writing. What is stored may come from anybody."""


def console() -> Console:
    """Standard output; without colours when it is not a terminal."""
    return Console(soft_wrap=False)


def show_rows(
    columns: Sequence[str],
    rows: Sequence[Sequence[Any]],
    caption: str,
    *,
    as_records: bool | None = None,
    count: bool = True,
) -> None:
    """Rows as a table, numbers to the right; where that would be too narrow to read, as records.

    Under it how many (`count`) and the caption.
    """
    out = console()
    cells = [[cell(value) for value in row] for row in rows]
    if as_records or (as_records is None and rows and not _fits(columns, cells, out.width)):
        _show_records(out, columns, cells)
    else:
        table = Table(box=None, header_style="bold", pad_edge=False)
        for number, name in enumerate(columns):
            is_number = bool(rows) and all(
                isinstance(row[number], int | float) for row in rows if row[number] is not None
            )
            table.add_column(Text(name), justify="right" if is_number else "left", overflow="fold")
        for line in cells:
            table.add_row(*line)
        out.print(table)
    counted = [f"{len(rows)} {'row' if len(rows) == 1 else 'rows'}"] if count else []
    out.print(f"[dim]{', '.join(counted + [caption] * bool(caption))}[/dim]")


def _fits(columns: Sequence[str], cells: Sequence[Sequence[Text]], width: int) -> bool:
    """Whether a table of this width leaves each column what it needs, or at least READABLE cells."""
    needed = sorted(max(len(name), *(line[number].cell_len for line in cells)) for number, name in enumerate(columns))
    left = width - 2 * (len(columns) - 1)
    for place, need in enumerate(needed):
        share = left // (len(needed) - place)
        if need > share:
            return share >= READABLE
        left -= need
    return True


def _show_records(out: Console, columns: Sequence[str], cells: Sequence[Sequence[Text]]) -> None:
    """Each row as lines of a name and a value."""
    for number, line in enumerate(cells, 1):
        out.rule(f"[bold]{number}[/bold]", align="left", style="dim")
        record = Table(box=None, show_header=False, pad_edge=False)
        record.add_column(style="bold", no_wrap=True)
        record.add_column(overflow="fold")
        for name, value in zip(columns, line, strict=True):
            record.add_row(Text(name), value)
        out.print(record)


def cell(value: Any) -> Text:
    """A value in a table: nothing for NULL, numbers short, long text cut."""
    if value is None:
        return Text("–", style="dim")
    text = number(value) if isinstance(value, float) else str(value)
    return Text((text if len(text) <= MAX_CELL else text[: MAX_CELL - 1] + "…").translate(SIGNS))


def plain(text: str) -> str:
    """Escape a text for use within markup.

    Nothing in it is read as markup, and a character that would steer the terminal is shown as a sign.
    """
    return escape(text.translate(SIGNS))


def number(value: float) -> str:
    """Four digits, but whole numbers as they are: 0.01234, 12.5, 1793520011."""
    return f"{value:.0f}" if 10_000 <= abs(value) < 1e15 else f"{value:.4g}"


def bar(share: float, width: int = 24) -> str:
    """A bar in eighths of cells; a value above 0 is always visible."""
    eighths = max(round(min(share, 1.0) * width * 8), 1 if share > 0 else 0)
    return "█" * (eighths // 8) + ("", *"▏▎▍▌▋▊▉")[eighths % 8]


def sparkline(counts: Sequence[int]) -> str:
    """One letter a count, as high as its share of the largest; a blank for none."""
    top = max(counts, default=0) or 1
    return "".join(" ▁▂▃▄▅▆▇█"[-(-8 * count // top)] for count in counts)


@contextmanager
def working(quiet: bool) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done while the block runs; only on a terminal."""
    out = console()
    if quiet or not out.is_terminal:
        yield lambda text: None
        return
    with out.status("") as status:
        yield lambda text: status.update(f"{plain(text)} …")


@contextmanager
def progress_bar(label: str, *, quiet: bool) -> Iterator[Callable[[int, int], None]]:
    """A function that moves a bar to (done, total) while the block runs; only on a terminal."""
    out = console()
    if quiet or not out.is_terminal:
        yield lambda done, total: None
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), console=out
    ) as progress:
        task = progress.add_task(plain(label), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def coloured(state: str) -> str:
    colour = COLOURS.get(state)
    return f"[{colour}]{state}[/{colour}]" if colour else state


def show_status(report: dict[str, Any]) -> None:
    """The node's health: what is wrong first, then each part."""
    out = console()
    out.print(
        f"thalweg is {coloured(report['status'])}"
        + (f" on {report['home']}, {report['broker']}" if "home" in report else "")
    )
    for problem in report["problems"]:
        out.print(f"  [red]•[/red] {plain(problem)}")
    if "home" not in report:
        if report.get("remedy"):
            out.print(f"  → {plain(report['remedy'])}")
        return
    parts = [["topic", name, part] for name, part in report["topics"].items()]
    parts += [["stage", name, part] for name, part in report["stages"].items()]
    table = Table(box=None, header_style="bold", pad_edge=False)
    numbers = {"applied": "applied", "lag": "lag", "oldest_s": "oldest s", "processed": "processed", "buried": "buried"}
    for name in ("", "part", "state", *numbers.values()):
        table.add_column(name, justify="right" if name in numbers.values() else "left", overflow="fold")
    for kind, name, part in parts:
        table.add_row(kind, name, coloured(str(part.get("state", ""))), *(cell(part.get(key)) for key in numbers))
    for name in ("keyword", "vector") if "indexes" in report else ():
        index = report["indexes"][name]
        state = "ok" if index["state"] == "ready" else index["state"]
        table.add_row("index", name, coloured(state), cell(index.get("count")), "", "", "", "")
    out.print(table)
    if report["role"] == "worker":
        return
    embedder = report["embedder"]
    model = (
        f"{embedder['model_id']} ({'trained' if embedder['trained'] else 'untrained'})"
        if embedder
        else "none: keyword search only"
    )
    if building := report["spaces"]["building"]:
        out.print(f"re-embedding into {plain(building['space'])}: {building['done']} of {building['total']} texts")
    if partial := report["spaces"]["partial"]:
        out.print(f"{partial} long texts are embedded in part; the rest follows")
    if turns := report["spaces"]["turns"]:
        out.print(f"{turns} turns of captured sessions are found by their words; their vectors follow, newest first")
    if failed := report["spaces"]["failed"]:
        out.print(
            f"{failed} texts have no vectors, or not all: model or log refused them; "
            "the table embedding_failures says why"
        )
    for found in report["misplaced"]:
        if not found["is_recent"]:
            out.print(
                f"{found['records']} records of {plain(found['source'])} lie on other partitions than their keys'; "
                "none came lately"
            )
    show_dreams(out, report["dreams"])
    letters = report["dead_letters"].get("new", 0)
    model += f", space {plain(report['spaces']['live'])}" if report["spaces"]["live"] else ""
    if http := report["http"]:
        out.print(
            f"HTTP on {http['url']}, bearer token: {plain(http['token_file'] or 'the setting `token`')}", soft_wrap=True
        )
    out.print(f"[dim]embedder {model}; {letters} new dead letters; {report['clients']} clients[/dim]")


def show_dreams(out: Console, dreams: dict[str, Any]) -> None:
    """Which namespaces dream, what of the upkeep of memories is switched off, and when what ran last."""
    for namespace, state in dreams["dreaming"].items():
        out.print(f"{plain(namespace)} dreams: {state}")
    switches = {"dream_when_idle": "when_idle", "merge_in_dreams": "merge_in_dreams", "observe_drift": "observe_drift"}
    if off := [setting for setting, name in switches.items() if not dreams[name]]:
        out.print(f"switched off: {', '.join(off)}")
    for name, run in dreams["last"].items():
        if run is not None:
            about = "; ".join(
                f"{key} {plain(str(value))}" for key, value in run.items() if key not in ("at", "namespace")
            )
            out.print(f"last {name}: {run['at']} in {plain(run['namespace'])}; {about}")


def tick(ok: bool) -> str:
    return "[green]✓[/green]" if ok else "[red]✗[/red]"


def show_diagnoses(diagnoses: Sequence[Any]) -> None:
    """The doctor's diagnoses, each failing one with its remedy."""
    out = console()
    for each in diagnoses:
        out.print(f"{tick(each.ok)} {each.name}: {plain(each.detail)}", soft_wrap=True)
        if not each.ok and each.remedy:
            out.print(f"  → {plain(each.remedy)}", soft_wrap=True)


def show_import(report: dict[str, Any]) -> None:
    """What an import did."""
    rate = report["events"] / report["seconds"] if report["seconds"] else 0.0
    rows = [
        [report[name] for name in ("files", "lines", "new_lines", "events", "unreadable", "records")]
        + [round(report["seconds"], 2), round(rate)]
    ]
    caption = "all applied" if report["applied"] else "not all applied yet: `thalweg status` says how far"
    show_rows(
        ["files", "lines", "new lines", "events", "unreadable", "records", "seconds", "events/s"],
        rows,
        caption,
        count=False,
    )
    if report["ignored_files"] or report["ignored_lines"]:
        left_out = f"{report['ignored_files']} files and {report['ignored_lines']} lines of others"
        console().print(f"[yellow]Ignore lists left out {left_out}.[/yellow]")
    for skipped in report["skipped"]:
        console().print(f"[yellow]Not imported: {plain(skipped)}.[/yellow]", soft_wrap=True)
    if report["unreadable"]:
        console().print("[yellow]Unreadable lines are dead letters: `thalweg dlq list` says why.[/yellow]")


def show_letters(answer: dict[str, Any]) -> None:
    """Dead letters, a line each: time, state, id, namespace, source, type, reason."""
    out = console()
    for letter in answer["dead_letters"]:
        named = [letter[name] or "-" for name in ("namespace", "source", "event_type")]
        reason = " ".join(str(letter["error_message"]).split())
        words = [str(letter["failed_at"])[:19], letter["state"], letter["dead_letter_id"], *named, reason]
        out.print("  ".join(plain(word) for word in words), soft_wrap=True)
    states = ", ".join(f"{count} {state}" for state, count in answer["states"].items())
    out.print(
        f"[dim]{answer['total']} fit; in all {states}[/dim]" if states else "[dim]no dead letters[/dim]", soft_wrap=True
    )
