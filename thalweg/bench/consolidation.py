"""`thalweg bench consolidation`: whether what says the same becomes one, and what searches lose.

Each turn of a conversation is stored, and again with one to three words changed (`rewording.py`). Then the node is
asked to consolidate. Reported are the share of the pairs that became one, how many memories of two turns did, and
before and after how much of the gold is among the first ten of `search_graph`, and how many of the ten repeat one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streams.errors import Unavailable
from thalweg.bench.graph_memory import GraphMemory
from thalweg.bench.recall_sets import Conversation, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.rewording import reworded
from thalweg.bench.scratch import SocketClient, running_node, scratch_directory

LIMIT = 10
MOST_CALLS = 20
"""Also of a busy node, which may decide later what it was asked for: then it is asked again."""
MERGED, WRONG, REPEATED = Target(90.0, at_least=True), Target(0.0), Target(5.0)


def measure_consolidation(dataset: str, embedder: str, questions: int | None = None) -> Report:
    """Store, consolidate and search each conversation; `questions`: at most this many of each. Raises Refused."""
    report = Report("consolidation", {"dataset": Path(dataset).name, "embedder": embedder})
    for number, conversation in enumerate(read_set(dataset)):
        asyncio.run(_measure(report, f"{number}", conversation, embedder, questions))
    return report


async def _measure(report: Report, name: str, conversation: Conversation, embedder: str, questions: int | None) -> None:
    with scratch_directory() as directory, running_node(directory / "home", embedder=embedder):
        client = await SocketClient.open(directory / "home")
        memory = GraphMemory(client)
        try:
            await client.greet()
            turn_of: dict[str, str] = {}
            pairs = [await _stored_twice(memory, conversation.name, turn, turn_of) for turn in conversation.turns]
            await memory.embedded()
            before = await _searched(memory, conversation, turn_of, questions)
            statistics = await _consolidated(memory)
            await memory.embedded()
            living = await memory.living(turn_of)
            turns_of: dict[str, set[str]] = {}
            for one, successor in living.items():
                turns_of.setdefault(successor, set()).add(turn_of[one])
            merged = {successor: next(iter(turns)) for successor, turns in turns_of.items()}
            after = await _searched(memory, conversation, merged, questions, turns_of)
        finally:
            client.close()
    together = sum(living[one] == living[other] for one, other in pairs)
    report.add(f"{name}_pairs_merged", 100 * together / len(pairs), "%", MERGED)
    report.add(f"{name}_of_two_turns", sum(len(turns) > 1 for turns in turns_of.values()), "memories")
    report.add(f"{name}_memories_before", len(living), "memories")
    report.add(f"{name}_memories_after", len(set(living.values())), "memories")
    report.add(f"{name}_recall_before", before[0], "%")
    report.add(f"{name}_recall_after", after[0], "%", Target(before[0], at_least=True))
    report.add(f"{name}_repeated_before", before[1], "%")
    report.add(f"{name}_repeated_after", after[1], "%", REPEATED)
    report.add(f"{name}_took", statistics["duration_ms"], "ms")


async def _stored_twice(memory: GraphMemory, name: str, turn: Turn, turn_of: dict[str, str]) -> tuple[str, str]:
    """The ids of a turn and of its rewording."""
    ids = [await memory.store(text) for text in (turn.text, reworded(turn.text, f"{name}{turn.turn_id}"))]
    for one in ids:
        turn_of.setdefault(one, turn.turn_id)
    return ids[0], ids[1]


async def _consolidated(memory: GraphMemory) -> dict[str, Any]:
    """The statistics of the last call, with the time of all."""
    took = 0.0
    for _ in range(MOST_CALLS):
        answer = await memory.asked("trigger_consolidation", max_memories=10_000)
        took += answer["statistics"]["duration_ms"]
        if not answer["consolidation_result"]["action_required"] and not answer.get("pending"):
            return {**answer["statistics"], "duration_ms": took}
    raise Unavailable(f"After {MOST_CALLS} calls there is still more to consolidate.")


async def _searched(
    memory: GraphMemory,
    conversation: Conversation,
    turn_of: Mapping[str, str],
    questions: int | None,
    turns_of: Mapping[str, set[str]] | None = None,
) -> tuple[float, float]:
    """Per cent of the gold among the first ten, and of these that repeat a turn above."""
    recalls, rows, repeated = list[float](), 0, 0
    for question in conversation.questions[:questions]:
        ids = [row["fingerprintId"] for row in await memory.find(question.text, LIMIT)]
        found = [turn_of[one] for one in ids]
        every = set().union(*((turns_of or {}).get(one, {turn_of[one]}) for one in ids))
        rows += len(found)
        repeated += len(found) - len(set(found))
        if question.turns:
            recalls.append(len(question.turns & every) / len(question.turns))
    return 100 * sum(recalls) / max(1, len(recalls)), 100 * repeated / max(1, rows)
