"""What people see of `thalweg demo`: its steps, its calls, the stages, and what to try next."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table

from thalweg.terminal.show import bar, cell, coloured, console, plain, show_rows, sparkline, tick

WIDE = 100
"""Cells from which on the plots are drawn in full."""


def show_demo(report: dict[str, Any]) -> None:
    """What the demo did, how long each step took, what each stage made of it, and what can be asked now."""
    out = console()
    verdict = "[green]everything worked[/green]" if report["ok"] else "[red]a step failed[/red]"
    out.print(f"\n[bold]thalweg demo[/bold]: {verdict}, {report['seconds']:.1f} s\n")
    _show_steps(out, "what was done", [step for step in report["steps"] if step["kind"] == "step"])
    _show_steps(out, "the agent's calls", [step for step in report["steps"] if step["kind"] == "call"])
    if "hits" in report:
        out.print(
            f"[bold]found for[/bold] “{plain(report['query'])}”  [dim]journal_query: score, kind[/dim]", soft_wrap=True
        )
        for hit in report["hits"]:
            out.print(f"  {hit['score']:.2f}  {plain(hit['entity_type'])}: {plain(hit['content'])}", soft_wrap=True)
        out.print()
    if "snippets" in report:
        out.print("[bold]snippets for the same question[/bold]  [dim]inner_voice.retrieve: cosine, table, trust[/dim]")
        for snippet in report["snippets"]:
            kind = f"{snippet['table']}, {snippet['trust_tier']}"
            out.print(f"  {snippet['score']:.2f}  {plain(kind)}: {plain(snippet['text'])}", soft_wrap=True)
        out.print()
    if "stages" in report:
        _show_stages(out, report)
    if report.get("moments"):
        _show_moments(out, report["moments"])
    for answer in report.get("answers", ()):
        out.print(f"[bold]{plain(answer['question'])}[/bold]")
        show_rows(answer["columns"], answer["rows"], f"{answer['ms']:.0f} ms")
        out.print()
    if "dead_letter" in report:
        letter = report["dead_letter"]
        out.print(
            f"[bold]dead letter[/bold] ({letter['bytes']} bytes kept as they were): {plain(letter['reason'])}",
            soft_wrap=True,
        )
    if "embedder" in report:
        out.print(_embedded_by(report["embedder"]), soft_wrap=True)
    if report["ok"]:
        out.print("\n[bold]next[/bold]")
        if shutil.which("thalweg") is None:
            out.print(f"  [dim]thalweg is {plain(os.path.relpath(sys.argv[0]))} here[/dim]", soft_wrap=True)
        for command, what in NEXT:
            out.print(f"  {command:46}  [dim]{what}[/dim]", soft_wrap=True)


NEXT = (
    ("thalweg up", "a node of your own, with a log in one file"),
    ("claude mcp add thalweg -- thalweg mcp", "give it to an agent"),
    ("thalweg import claude-code ~/.claude/projects", "what agents did until now"),
    ('thalweg search "…"', "what is remembered, and why it was found"),
    ('thalweg sql "FROM tool_call_latencies"', "your own questions; docs/questions.md has more"),
)


def _show_steps(out: Console, title: str, steps: Sequence[dict[str, Any]]) -> None:
    longest = max((step["ms"] for step in steps), default=0.0) or 1.0
    width = 16 if out.width >= WIDE else 6
    table = Table(box=None, show_header=False, pad_edge=False, title=title, title_style="bold", title_justify="left")
    for justify, wraps in (("left", False), ("left", False), ("right", False), ("left", False), ("left", True)):
        table.add_column(justify="right" if justify == "right" else "left", no_wrap=not wraps)
    for step in steps:
        shown = f"[cyan]{bar(step['ms'] / longest, width)}[/cyan]"
        table.add_row(
            tick(step["ok"]), plain(step["name"]), f"{step['ms']:,.1f} ms", shown, f"[dim]{plain(step['detail'])}[/dim]"
        )
    if steps:
        out.print(table)
        out.print()


def _show_stages(out: Console, report: dict[str, Any]) -> None:
    numbers = ("processed", "facts", "buried", "busy ms", "applied", "lag")
    table = Table(
        box=None,
        header_style="bold",
        pad_edge=False,
        title="the stages, and how far each part is",
        title_style="bold",
        title_justify="left",
    )
    for name in ("part", "state", *numbers):
        table.add_column(name, justify="right" if name in numbers else "left")
    for name, part in report["stages"].items():
        busy = round(part["busy_s"] * 1000)
        cells = (part["processed"], part["facts"], part["buried"], busy, part.get("applied"), part.get("lag"))
        table.add_row(f"stage {name}", coloured(str(part.get("state", ""))), *map(cell, cells))
    for name, part in report["topics"].items():
        if part["applied"] or part["lag"]:
            table.add_row(name, coloured(part["state"]), "", "", "", "", cell(part["applied"]), cell(part["lag"]))
    out.print(table)
    seen = report["materialiser"]
    counts = ", ".join(
        f"{name} {index['count']}" for name in ("keyword", "vector") if "count" in (index := report["indexes"][name])
    )
    out.print(
        f"[dim]materialiser: {seen['records']} records, {seen['events']} events in {seen['batches']} transactions; "
        f"indexes: {counts}[/dim]\n",
        soft_wrap=True,
    )


def _show_moments(out: Console, moments: Sequence[float]) -> None:
    width = 48 if out.width >= WIDE else 24
    first, last = moments[0], moments[-1]
    counts = [0] * width
    for moment in moments:
        counts[min(int((moment - first) / ((last - first) or 1.0) * width), width - 1)] += 1
    begin, end = (f"{datetime.fromtimestamp(moment, UTC):%H:%M:%S}" for moment in (first, last))
    out.print(
        f"[bold]the imported session[/bold]  {begin} [cyan]{sparkline(counts)}[/cyan] {end}  "
        f"[dim]{len(moments)} events[/dim]\n"
    )


def _embedded_by(embedder: dict[str, Any] | None) -> str:
    if embedder is None:
        return "[bold]embedder[/bold]: none; what was found was found by words and relations only."
    kind = (
        "a trained model"
        if embedder["trained"]
        else "[yellow]untrained[/yellow]: it knows shared words and letters, no meaning"
    )
    return f"[bold]embedder[/bold]: {plain(embedder['model_id'])}, {embedder['dim']} dimensions, {kind}."
