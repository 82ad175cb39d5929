"""Benches of Context Graph: its views, pulse, goals, causes, consolidation and dreams."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from thalweg.commands.bench.options import DATASET, EMBEDDER, JSON, SIZES, show

if TYPE_CHECKING:
    from thalweg.bench.report import Report

QUESTIONS = click.option(
    "--questions", type=click.IntRange(1), help="At most this many questions a conversation; default: all."
)


@click.command()
@JSON
@EMBEDDER
@DATASET
@click.option("--questions", type=click.IntRange(1), default=None, help="Ask only this many of a conversation.")
@click.option(
    "--functions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=None,
    help="Instead of a data set the functions in a folder of transcripts, asked for by the words of their names.",
)
@click.option("--view-models", default="", help="Views with models of their own, as the setting `view_models`.")
def views(
    as_json: bool, embedder: str, dataset: str, questions: int | None, functions: Path | None, view_models: str
) -> None:
    """Measure how well each of the thirteen views ranks, alone and together, and what the views cost.

    \b
    Example: thalweg bench views --dataset locomo10.json
    Example: thalweg bench views --functions transcripts
    Example: thalweg bench views --view-models E7=some/code-model
    """
    from processors.embedding.view_model import ViewEncoder
    from thalweg.bench.recall import load_for_recall
    from thalweg.bench.views import measure_functions, measure_views
    from thalweg.settings import Settings

    if functions is not None:
        show(lambda: measure_functions(functions, load_for_recall(embedder), embedder), as_json)
        return

    def measured() -> Report:
        wanted = Settings(view_models=view_models).models_of_views
        models = {view: ViewEncoder(view, load_for_recall(name)) for view, name in wanted.items()}
        return measure_views(dataset, load_for_recall(embedder), embedder, questions, models)

    show(measured, as_json)


@click.command()
@JSON
@EMBEDDER
@click.option(
    "--fixture",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="Chains of memories (*.toml, docs/benchmarks.md), or a file or folder of LoCoMo.",
)
def causes(as_json: bool, embedder: str, fixture: Path) -> None:
    """Measure whether the edges from cause to effect are right, and whether they answer "why".

    \b
    Example: thalweg bench causes --fixture tests/fixtures/causes.toml
    """
    from thalweg.bench.causes import measure_causes
    from thalweg.bench.recall import load_for_recall

    show(lambda: measure_causes(fixture, load_for_recall(embedder), embedder), as_json)


@click.command()
@JSON
@click.option("--memories", type=click.IntRange(100), default=100_000, show_default=True, help="How many there are.")
@click.option("--edges", type=click.IntRange(10), default=50_000, show_default=True, help="Between causes and effects.")
def infer(as_json: bool, memories: int, edges: int) -> None:
    """Measure what an inference over causes costs among many memories.

    \b
    Example: thalweg bench infer
    """
    from thalweg.bench.infer import measure_infer

    show(lambda: measure_infer(memories, edges), as_json)


@click.command()
@JSON
@EMBEDDER
@click.option("--size", type=click.IntRange(100), default=10_000, show_default=True, help="Memories of the dream.")
@click.option(
    "--n", "count", type=click.IntRange(1), default=200, show_default=True, help="Searches and writes beside it."
)
def dream(as_json: bool, embedder: str, size: int, count: int) -> None:
    """Measure how long a dream holds the node in one piece, and what searches and writes beside it wait.

    \b
    Example: thalweg bench dream --size 10000
    """
    from thalweg.bench.dream import measure_dream

    show(lambda: measure_dream(size, count, embedder), as_json)


@click.command()
@JSON
@EMBEDDER
@SIZES
@click.option("--n", "count", type=click.IntRange(1), default=100, show_default=True, help="Calls of each tool.")
def tools(as_json: bool, embedder: str, sizes: tuple[int, ...], count: int) -> None:
    """Measure what each tool of Context Graph takes beside many memories, but for searches and writes.

    \b
    Example: thalweg bench tools --sizes 10000
    """
    from thalweg.bench.tools import measure_tools

    show(lambda: measure_tools(sizes, count, embedder), as_json)


@click.command()
@JSON
@EMBEDDER
@DATASET
def dials(as_json: bool, embedder: str, dataset: str) -> None:
    """Measure what serotonin, dopamine and noradrenaline make of the answers to a data set's questions.

    \b
    Example: thalweg bench dials --dataset locomo10.json
    """
    from thalweg.bench.dials import measure_dials
    from thalweg.bench.recall import load_for_recall

    show(lambda: measure_dials(dataset, load_for_recall(embedder), embedder), as_json)


@click.command()
@JSON
@EMBEDDER
@click.argument("dataset")
def pulse(as_json: bool, embedder: str, dataset: str) -> None:
    """Measure whether the pulse of Context Graph tells when one conversation follows another.

    The data set is a file or folder of LoCoMo, LongMemEval or chats (docs/benchmarks.md) with several conversations.

    \b
    Example: thalweg bench pulse locomo10.json
    """
    from thalweg.bench.pulse import measure_pulse

    show(lambda: measure_pulse(dataset, embedder), as_json)


@click.command()
@JSON
@EMBEDDER
@click.argument("dataset")
def drift(as_json: bool, embedder: str, dataset: str) -> None:
    """Measure whether drift tells when the matter changes, and what its correction does to searches.

    The data set is a file or folder of LoCoMo, LongMemEval or chats with several conversations, or a folder with the
    transcripts of several projects (docs/benchmarks.md).

    \b
    Example: thalweg bench drift locomo10.json
    """
    from thalweg.bench.drift import measure_drift

    show(lambda: measure_drift(dataset, embedder), as_json)


@click.command()
@JSON
@EMBEDDER
@click.option(
    "--unrelated",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Sentences of many matters, one a line.",
)
@click.argument("dataset")
def themes(as_json: bool, embedder: str, unrelated: Path, dataset: str) -> None:
    """Measure whether a goal is found in each conversation, and none in sentences of many matters.

    The data set is a file or folder of LoCoMo, LongMemEval or chats (docs/benchmarks.md).

    \b
    Example: thalweg bench themes locomo10.json --unrelated sentences.txt
    """
    from thalweg.bench.themes import measure_themes

    show(lambda: measure_themes(dataset, unrelated, embedder), as_json)


@click.command()
@JSON
@EMBEDDER
@click.argument("dataset", default="bundled")
@click.option("--fit", is_flag=True, help="Fit the weights, for each conversation on all others.")
def trust(as_json: bool, embedder: str, dataset: str, fit: bool) -> None:
    """Measure whether the relevance of a row is the probability that it is right.

    The data set is a file or folder of LoCoMo, LongMemEval or chats (docs/benchmarks.md), or `bundled`: the three sets
    of this program, on which the weights are fitted.

    \b
    Example: thalweg bench trust locomo10.json
    Example: thalweg bench trust --fit
    """
    from thalweg.bench.recall import load_for_recall
    from thalweg.bench.trust import measure_trust

    show(lambda: measure_trust(dataset, load_for_recall(embedder), embedder, fit=fit), as_json)


@click.command()
@JSON
@EMBEDDER
@QUESTIONS
@click.argument("dataset")
def consolidation(as_json: bool, embedder: str, questions: int | None, dataset: str) -> None:
    """Measure whether memories that say the same become one, and whether searches lose by it.

    Each turn of the data set, a file or folder of LoCoMo, LongMemEval or chats (docs/benchmarks.md), is stored twice,
    the second time with one to three words changed.

    \b
    Example: thalweg bench consolidation locomo10.json
    """
    from thalweg.bench.consolidation import measure_consolidation

    show(lambda: measure_consolidation(dataset, embedder, questions), as_json)


@click.command()
@JSON
@EMBEDDER
@QUESTIONS
@click.argument("dataset")
def night(as_json: bool, embedder: str, questions: int | None, dataset: str) -> None:
    """Measure what a dream of Context Graph brings to questions that were asked again and again.

    The data set is a file or folder of LoCoMo (docs/benchmarks.md): questions with several gold turns are asked five
    times, then a dream joins what was recalled together, and all are asked again.

    \b
    Example: thalweg bench night locomo10.json
    """
    from thalweg.bench.night import measure_night
    from thalweg.bench.recall import load_for_recall

    show(lambda: measure_night(dataset, load_for_recall(embedder), embedder, questions), as_json)


@click.command()
@JSON
@EMBEDDER
@QUESTIONS
@click.option(
    "--again",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="The share of the turns that are told once more on a later day.",
)
@click.argument("dataset")
def week(as_json: bool, embedder: str, questions: int | None, again: float, dataset: str) -> None:
    """Measure what seven nights make of memories that were told twice, and what searches lose by it.

    The data set is a file or folder of LoCoMo, LongMemEval or chats (docs/benchmarks.md). Each day a node is told a
    seventh of it and some of the days before in other words; at night it dreams by itself. Takes minutes.

    \b
    Example: thalweg bench week locomo10.json
    """
    from thalweg.bench.week import measure_week

    show(lambda: measure_week(dataset, embedder, again, questions), as_json)


COMMANDS = (views, causes, infer, tools, dials, pulse, drift, themes, trust, consolidation, dream, night, week)
