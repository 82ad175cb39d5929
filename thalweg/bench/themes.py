"""`thalweg bench themes`: whether a goal is found in what is of one matter, and in nothing else.

A node of its own is given each conversation of a data set by `store_memory`, and asked for its North Star twice.
Another one is given sentences that have nothing to do with each other, and is to refuse.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, closing
from pathlib import Path

from streams.errors import Refused, Unavailable
from thalweg.bench.graph_memory import GraphMemory
from thalweg.bench.recall_sets import read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, running_node, scratch_directory

TOOL, NO_GOAL = "auto_bootstrap_north_star", -32110
CONFIDENT, UNSURE, YES = Target(0.7, at_least=True), Target(0.7), Target(1.0, at_least=True)
MOST_SENTENCES = 200
"""This many of the file."""
SEED = 4


def measure_themes(dataset: str, unrelated: Path, embedder: str) -> Report:
    """Each conversation, and at most MOST_SENTENCES lines of a file, shuffled. Raises Refused for one without lines."""
    report = Report("themes", {"dataset": Path(dataset).name, "unrelated": unrelated.name, "embedder": embedder})
    sentences = [line for line in unrelated.read_text(encoding="utf-8").splitlines() if line.strip()]
    if not sentences:
        raise Refused(f"{unrelated} has no lines; a sentence a line is expected.")
    random.Random(SEED).shuffle(sentences)
    for number, conversation in enumerate(read_set(dataset)):
        asyncio.run(_related(report, f"{number}", [turn.text for turn in conversation.turns], embedder))
    asyncio.run(_unrelated(report, sentences[:MOST_SENTENCES], embedder))
    return report


@asynccontextmanager
async def _memory_of(texts: Iterable[str], embedder: str) -> AsyncIterator[GraphMemory]:
    """A node that has these texts and their vectors."""
    with scratch_directory() as directory:
        home = directory / "home"
        with running_node(home, embedder=embedder), closing(await SocketClient.open(home)) as client:
            await client.greet()
            memory = GraphMemory(client)
            for text in texts:
                await memory.store(text)
            await memory.embedded()
            yield memory


async def _related(report: Report, name: str, texts: Iterable[str], embedder: str) -> None:
    async with _memory_of(texts, embedder) as memory:
        answer = await memory.client.answer("tools/call", {"name": TOOL, "arguments": {}})
        if "error" in answer:
            report.add(f"{name}_confidence", _refused(answer)[1], "", CONFIDENT)
            return
        goal = answer["result"]["structuredContent"]["bootstrap_result"]
        again = (await memory.call(TOOL))["bootstrap_result"]
    report.add(f"{name}_confidence", goal["confidence"], "", CONFIDENT)
    report.add(f"{name}_same_goal_again", float(again["goal_id"] == goal["goal_id"]), "", YES)


async def _unrelated(report: Report, sentences: list[str], embedder: str) -> None:
    async with _memory_of(sentences, embedder) as memory:
        answer = await memory.client.answer("tools/call", {"name": TOOL, "arguments": {}})
    code, best = _refused(answer) if "error" in answer else (0, 1.0)
    report.add("unrelated_sentences", len(sentences), "sentences")
    report.add("unrelated_refused", float(code == NO_GOAL), "", YES)
    report.add("unrelated_best_confidence", best, "", UNSURE)


def _refused(answer: dict[str, dict[str, object]]) -> tuple[int, float]:
    """The code of an error, and the confidence of the best candidate. Raises Unavailable where it names none."""
    error = answer["error"]
    code, data = error["code"], error.get("data")
    best = data.get("best_confidence") if isinstance(data, dict) else None
    if not isinstance(code, int) or not isinstance(best, int | float):
        raise Unavailable(f"The node did not look for a goal: {error}")
    return code, float(best)
