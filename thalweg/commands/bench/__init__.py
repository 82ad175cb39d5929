"""`thalweg bench`: measurements as commands, each with its target and the limit of its own run."""

from __future__ import annotations

from pathlib import Path

import click

from thalweg.commands.bench.graph import COMMANDS
from thalweg.commands.bench.options import BROKER, DATASET, EMBEDDER, JSON, SIZES, CountList, show


@click.group(commands=COMMANDS)
def bench() -> None:
    """Measure this machine. A scratch directory is made and removed; no data directory of yours is touched."""


@bench.command()
@JSON
@BROKER
@EMBEDDER
@click.option(
    "--tool", default="journal_write", show_default=True, help="The write tool that is called, of any toolset."
)
@click.option(
    "--callers", type=CountList(), default="1,8", show_default=True, help="How many write at once, one run each."
)
@click.option("--n", "count", type=click.IntRange(1), default=200, show_default=True, help="Measured calls a run.")
@click.option(
    "--size",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Rows that the store holds before, made by events.",
)
def write(
    as_json: bool, broker: str, embedder: str, tool: str, callers: tuple[int, ...], count: int, size: int
) -> None:
    """Measure how long a memory takes to be accepted, and until it can be searched.

    \b
    Example: thalweg bench write --tool update_working_memory --callers 1
    Example: thalweg bench write --tool belief_create --callers 1 --size 100000 --embedder hashing
    """
    from thalweg.bench.write import measure_write

    show(lambda: measure_write(callers, count, embedder=embedder, broker=broker, tool=tool, size=size), as_json)


@bench.command()
@JSON
@BROKER
@EMBEDDER
@click.option(
    "--accepted",
    type=click.IntRange(8),
    default=10_000,
    show_default=True,
    help="Events that eight producers publish one at a time.",
)
@click.option(
    "--n", "lines", type=click.IntRange(1), default=50_000, show_default=True, help="Lines of the generated transcript."
)
@click.option(
    "--rate",
    type=click.IntRange(1),
    default=100,
    show_default=True,
    help="Memories a second while measuring how soon they are found.",
)
@click.option(
    "--seconds", type=click.IntRange(1), default=10, show_default=True, help="Seconds for which that rate is kept up."
)
def ingest(as_json: bool, broker: str, embedder: str, accepted: int, lines: int, rate: int, seconds: int) -> None:
    """Measure how many events a second are accepted, imported and applied, beside a bare consumer.

    \b
    Example: thalweg bench ingest --n 50000
    """
    from thalweg.bench.ingest import measure_ingest

    show(lambda: measure_ingest(accepted, lines, rate, seconds, embedder=embedder, broker=broker), as_json)


@bench.command()
@JSON
@EMBEDDER
@SIZES
@click.option(
    "--n", "count", type=click.IntRange(1), default=200, show_default=True, help="Measured queries of a kind."
)
@click.option("--bare/--no-bare", default=True, show_default=True, help="Also hnswlib and tantivy by themselves.")
@click.option(
    "--tool",
    default=None,
    help="Only this search tool, through the door of a node with this many of what it searches.",
)
@click.option(
    "--turns",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Turns of captured sessions beside the memories; without --tool.",
)
@click.option(
    "--callers",
    type=CountList(),
    default="1",
    show_default=True,
    help="With --tool: how many ask at once, one run each.",
)
def search(
    as_json: bool,
    embedder: str,
    sizes: tuple[int, ...],
    count: int,
    bare: bool,
    tool: str | None,
    turns: int,
    callers: tuple[int, ...],
) -> None:
    """Time searches with and without filters, their recall, and the rebuild of a node's indexes.

    \b
    Example: thalweg bench search --tool hybrid_search --sizes 10000
    """
    from thalweg.bench.search import measure_search
    from thalweg.bench.search_tool import measure_search_tool

    show(
        lambda: (
            measure_search_tool(tool, sizes, count, embedder, callers=callers, bare=bare)
            if tool
            else measure_search(sizes, count, embedder, bare=bare, turns=turns)
        ),
        as_json,
    )


@bench.command()
@JSON
@EMBEDDER
@DATASET
@click.option("--questions", type=click.IntRange(1), default=None, help="Ask only this many.")
@click.option(
    "--embedded",
    type=click.FloatRange(0, 1),
    default=1.0,
    show_default=True,
    help="Share of the texts that have vectors; 0: words alone.",
)
@click.option(
    "--through-tools",
    is_flag=True,
    help="Write and ask over MCP, as an agent does: with a tool's own limit of 10.",
)
@click.option(
    "--tool",
    type=click.Choice(["journal_query", "search_graph", "search_teleological"]),
    default="journal_query",
    show_default=True,
    help="Through the tools: the one that searches.",
)
@click.option("--no-sessions", is_flag=True, help="Through the tools: no write names a session or a time.")
def recall(
    as_json: bool,
    embedder: str,
    dataset: str,
    questions: int | None,
    embedded: float,
    through_tools: bool,
    tool: str,
    no_sessions: bool,
) -> None:
    """Measure how much of what answers a question is found, beside BM25 and dense search.

    Also while texts have no vectors yet, and through the tools, as an agent gets it.

    \b
    Example: thalweg bench recall --dataset locomo10.json
    Example: thalweg bench recall --dataset locomo10.json --embedded 0
    Example: thalweg bench recall --dataset locomo10.json --through-tools --tool search_graph --no-sessions
    """
    from thalweg.bench.recall import load_for_recall, measure_recall
    from thalweg.bench.recall_tools import measure_tools

    if not through_tools:
        if no_sessions:
            raise click.UsageError("--no-sessions goes with --through-tools.")
        show(lambda: measure_recall(dataset, load_for_recall(embedder), embedder, questions, embedded), as_json)
        return
    if embedded < 1:
        raise click.UsageError("--embedded does not go with --through-tools: there the node embeds everything.")
    show(lambda: measure_tools(dataset, embedder, questions, tool=tool, sessions=not no_sessions), as_json)


@bench.command()
@JSON
@BROKER
@EMBEDDER
@click.option("--n", "count", type=click.IntRange(1), default=5, show_default=True, help="Starts of a kind.")
def start(as_json: bool, broker: str, embedder: str, count: int) -> None:
    """Time `initialize` over stdio with and without a running node, and weigh the node's memory.

    \b
    Example: thalweg bench start
    """
    from thalweg.bench.start import measure_start

    show(lambda: measure_start(count, embedder=embedder, broker=broker), as_json)


@bench.command()
@JSON
@EMBEDDER
@click.option(
    "--floods",
    default="ping,unknown,list,garbage,read,write",
    show_default=True,
    help="What the flooding client sends, one run each.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(0.4),
    default=20.0,
    show_default=True,
    help="Seconds alone, and as many beside each flood.",
)
def fairness(as_json: bool, embedder: str, floods: str, seconds: float) -> None:
    """Measure how much longer calm clients wait beside one that floods, and whether calls are refused.

    \b
    Example: thalweg bench fairness --floods ping,write --seconds 10
    """
    from thalweg.bench.fairness import measure_fairness

    show(lambda: measure_fairness(floods.split(","), seconds, embedder=embedder), as_json)


@bench.command()
@JSON
@EMBEDDER
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path))
def inject(as_json: bool, embedder: str, directory: Path) -> None:
    """Measure how often a prompt is given facts of earlier sessions, and whether they are the right ones.

    The directory holds transcripts of the marked sessions (docs/benchmarks.md says which, and where they are from).

    \b
    Example: thalweg bench inject transcripts
    """
    from thalweg.bench.inject import measure_inject
    from thalweg.bench.recall import load_for_recall

    show(lambda: measure_inject(directory, load_for_recall(embedder), embedder), as_json)


@bench.command()
@JSON
@EMBEDDER
@click.option(
    "--minutes", type=click.FloatRange(0.01), default=30.0, show_default=True, help="How long tools are called."
)
@click.option("--size", type=click.IntRange(1), default=6000, show_default=True, help="Memories in the store before.")
def memory(as_json: bool, embedder: str, minutes: float, size: int) -> None:
    """Weigh a node while all tools are called, by one caller and by eight in turns.

    \b
    Example: thalweg bench memory --minutes 30
    """
    from thalweg.bench.memory import measure_memory

    show(lambda: measure_memory(minutes, size, embedder=embedder), as_json)


COMMAND = bench
