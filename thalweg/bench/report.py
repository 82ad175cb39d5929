"""What a measurement says: figures with their targets, and the machine and load they were taken under."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import orjson
from rich.table import Table

from thalweg.terminal.show import console, plain


@dataclass(frozen=True, slots=True)
class Target:
    """A promise: `at_most` or `at_least` this number, in the figure's unit."""

    limit: float
    at_least: bool = False

    def is_met(self, value: float) -> bool:
        return value >= self.limit if self.at_least else value <= self.limit

    def __str__(self) -> str:
        return f"{'≥' if self.at_least else '≤'} {self.limit:g}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured number. `bare`: it is the limit of the parts themselves, without thalweg."""

    value: float
    unit: str
    target: Target | None = None
    bare: bool = False

    def to_json(self) -> dict[str, Any]:
        met = None if self.target is None else self.target.is_met(self.value)
        target = None if self.target is None else str(self.target)
        return {"value": round(self.value, 4), "unit": self.unit, "target": target, "met": met, "bare": self.bare}


@dataclass
class Report:
    """The figures of one command, by name, in the order in which they were taken."""

    bench: str
    settings: dict[str, Any]
    figures: dict[str, Figure] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=lambda: asdict(Machine.now()))

    def add(self, name: str, value: float, unit: str, target: Target | None = None, *, bare: bool = False) -> None:
        self.figures[name] = Figure(value, unit, target, bare)

    def add_quantiles(
        self,
        name: str,
        values_ms: Sequence[float],
        *,
        bare: bool = False,
        p95: Target | None = None,
        p99: Target | None = None,
    ) -> None:
        """p50, p95 and p99 of durations in ms, as `<name>_p50_ms` and so on."""
        for quantile, target in ((50, None), (95, p95), (99, p99)):
            self.add(f"{name}_p{quantile}_ms", float(np.percentile(values_ms, quantile)), "ms", target, bare=bare)

    def to_json(self) -> dict[str, Any]:
        figures = {name: figure.to_json() for name, figure in self.figures.items()}
        machine = {**self.machine, "load_1m_after": load()}
        return {"bench": self.bench, "machine": machine, "settings": self.settings, "figures": figures}


@dataclass(frozen=True, slots=True)
class Machine:
    """What the figures were taken on. `load_1m` is the load average before the run: above 0 others used the machine."""

    system: str
    python: str
    cores: int
    load_1m: float

    @classmethod
    def now(cls) -> Machine:
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(f"{platform.system()} {platform.machine()}", platform.python_version(), cores, load())


def load() -> float:
    """The load average of the last minute."""
    return round(os.getloadavg()[0], 2)


def print_report(report: Report, *, as_json: bool) -> None:
    """As JSON for programs, else as a table with the targets beside the figures."""
    body = report.to_json()
    if as_json:
        sys.stdout.write(orjson.dumps(body, option=orjson.OPT_INDENT_2).decode() + "\n")
        return
    table = Table(box=None, header_style="bold", pad_edge=False)
    # A long name takes two lines, so that a figure is never cut.
    table.add_column("figure", overflow="fold")
    for title in ("value", "unit", "target", ""):
        table.add_column(title, justify="right" if title in ("value", "target") else "left", no_wrap=True)
    for name, figure in report.figures.items():
        target = figure.target
        verdict = "" if target is None else "[green]met[/green]" if target.is_met(figure.value) else "[red]missed[/red]"
        shown = f"[dim]{name}[/dim]" if figure.bare else name
        table.add_row(shown, _number(figure.value), figure.unit, str(target or ""), verdict)
    out = console()
    out.print(table)
    machine = body["machine"]
    out.print(
        f"[dim]{machine['system']}, {machine['cores']} cores, Python {machine['python']}, "
        f"load {machine['load_1m']} before and {machine['load_1m_after']} after; "
        f"{plain(', '.join(f'{name}={value}' for name, value in report.settings.items()))}[/dim]"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}"
