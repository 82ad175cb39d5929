"""Options that several benches share, and how their reports are shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from thalweg.bench.report import Report


class CountList(click.ParamType):
    """A comma-separated list of positive whole numbers."""

    name = "n,n,…"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> tuple[int, ...]:
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.isdigit() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is not a list such as 1,8.", param, ctx)
        return tuple(int(part) for part in parts)


JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
BROKER = click.option(
    "--broker",
    default="",
    help="kafka://host:port of a broker for this alone; default: an embedded log in the scratch directory.",
)
DATASET = click.option(
    "--dataset",
    default="messages",
    show_default=True,
    help="A file or folder of LoCoMo, LongMemEval or chats (docs/benchmarks.md), or `messages`, `notes`, `small_talk`.",
)
EMBEDDER = click.option("--embedder", default="minilm", show_default=True, help="minilm, hashing or none.")
SIZES = click.option(
    "--sizes", type=CountList(), default="10000,100000", show_default=True, help="Memories in the store, one run each."
)


def show(measure: Callable[[], Report], as_json: bool) -> None:
    from thalweg.bench.report import print_report

    print_report(measure(), as_json=as_json)
