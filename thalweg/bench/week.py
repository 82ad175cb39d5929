"""`thalweg bench week`: what seven nights make of a memory that is told much of it twice.

Each day a node is told the next seventh of a conversation, and again, with one to three words changed (`rewording.py`),
some of what it was told on the days before. It is asked the questions whose last answer it was told that day. Then
nobody calls, the clock goes on to the next morning, and the node dreams when its own timers say so. The control is the
same week with the node's setting that dreams do not begin by themselves. At the end all questions are asked, and of
each memory the living one that stands for it counts. The node lives in this process, so that its clock can be set; it
is asked over MCP all the same.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np

from streams.clock import SystemClock
from streams.errors import Unavailable
from thalweg.bench.graph_memory import GraphMemory
from thalweg.bench.recall_sets import Conversation, Question, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.rewording import reworded
from thalweg.bench.scratch import SocketClient, environment, scratch_directory
from thalweg.process.node import Node
from thalweg.settings import load

DAYS, LIMIT = 7, 10
NIGHT, MORNING = timedelta(hours=13), timedelta(hours=11)
"""From the last call of a day to the dream, and from the dream to the first call of the next day."""
LOOKS, LOOK_S = 1200, 0.25
AGAIN = 0.5
FEWER, LOSS = Target(20.0, at_least=True), Target(0.0, at_least=True)


class WeekClock(SystemClock):
    """The machine's clock, and what was skipped."""

    def __init__(self) -> None:
        self._skipped = timedelta()

    def skip(self, time: timedelta) -> None:
        self._skipped += time

    def now(self) -> datetime:
        return super().now() + self._skipped

    def monotonic(self) -> float:
        return super().monotonic() + self._skipped.total_seconds()


@dataclass(frozen=True, slots=True)
class Day:
    """What a node is told: turns, and turns of earlier days in other words; then what it is asked."""

    new: Sequence[Turn]
    again: Sequence[tuple[Turn, str]]
    asked: Sequence[Question]


@dataclass
class _Week:
    """How a week ended: the turns that each living memory stands for; the recall of questions, 0 to 1."""

    turns_of: dict[str, set[str]] = field(default_factory=dict)
    stored: int = 0
    recalls: list[float] = field(default_factory=list)

    @property
    def recall(self) -> float:
        return 100 * float(np.mean(self.recalls))


def measure_week(dataset: str, embedder: str, again: float = AGAIN, questions: int | None = None) -> Report:
    """Live through a week of each conversation, with nights and without.

    `again`: the share of the turns of the first six days that are told once more on a later day; `questions`: at most
    this many of a conversation. Raises Refused for a data set that cannot be read, Unavailable for a night without end.
    """
    report = Report("week", {"dataset": Path(dataset).name, "embedder": embedder, "again": again})
    fewer, gained = list[float](), list[float]()
    for number, conversation in enumerate(read_set(dataset)):
        days = days_of(conversation, again, questions)
        awake, slept = (asyncio.run(_live(days, embedder, sleeps=sleeps)) for sleeps in (False, True))
        fewer.append(100 * (1 - len(slept.turns_of) / len(awake.turns_of)))
        gained.append(slept.recall - awake.recall)
        _report(report, f"{number}", awake, slept)
    for name, values, unit, target in (("fewer", fewer, "%", FEWER), ("gain", gained, "points", LOSS)):
        report.add(name, float(np.mean(values)), unit, target)
        report.add(f"{name}_least", min(values), unit)
        report.add(f"{name}_most", max(values), unit)
    return report


def days_of(conversation: Conversation, again: float, questions: int | None = None) -> list[Day]:
    """The week of a conversation, the same each time."""
    chance = random.Random(conversation.name)
    turns = conversation.turns
    edges = [len(turns) * day // DAYS for day in range(DAYS + 1)]
    told_on = {turn.turn_id: day for day in range(DAYS) for turn in turns[edges[day] : edges[day + 1]]}
    repeated: list[list[tuple[Turn, str]]] = [[] for _ in range(DAYS)]
    for turn in turns[: edges[DAYS - 1]]:
        if chance.random() < again:
            later = chance.randrange(told_on[turn.turn_id] + 1, DAYS)
            repeated[later].append((turn, reworded(turn.text, f"{conversation.name}{turn.turn_id}")))
    asked: list[list[Question]] = [[] for _ in range(DAYS)]
    for question in [one for one in conversation.questions if one.turns][:questions]:
        asked[max(told_on[turn] for turn in question.turns)].append(question)
    return [Day(turns[edges[day] : edges[day + 1]], repeated[day], asked[day]) for day in range(DAYS)]


async def _live(days: Sequence[Day], embedder: str, *, sleeps: bool) -> _Week:
    logging.getLogger().setLevel(logging.WARNING)
    clock = WeekClock()
    with scratch_directory() as directory:
        home = directory / "home"
        settings = load({}, environment(home, embedder=embedder, dream_when_idle=str(sleeps).lower()))
        node = Node(settings, clock)
        await node.start()
        try:
            with closing(await SocketClient.open(home)) as client:
                await client.greet()
                return await _days(GraphMemory(client), days, clock, sleeps=sleeps)
        finally:
            await node.stop()


async def _days(memory: GraphMemory, days: Sequence[Day], clock: WeekClock, *, sleeps: bool) -> _Week:
    turn_of: dict[str, str] = {}
    for night, day in enumerate(days, 1):
        told = [(turn, turn.text) for turn in day.new] + list(day.again)
        for turn, text in told:
            turn_of.setdefault(await memory.store(text), turn.turn_id)
        for question in day.asked:
            await memory.find(question.text, LIMIT)
        await memory.embedded()
        clock.skip(NIGHT)
        if sleeps:
            await _dreamt(memory, night)
        clock.skip(MORNING)
    await memory.embedded()
    week = _Week(stored=sum(len(day.new) + len(day.again) for day in days))
    for one, successor in (await memory.living(turn_of)).items():
        week.turns_of.setdefault(successor, set()).add(turn_of[one])
    for question in (question for day in days for question in day.asked):
        week.recalls.append(await _recall(memory, question, week.turns_of))
    return week


async def _dreamt(memory: GraphMemory, nights: int) -> None:
    """Wait until the node has dreamt in this many nights."""
    for _ in range(LOOKS):
        if (await memory.call("get_dream_status"))["completed_cycles"] >= nights:
            return
        await asyncio.sleep(LOOK_S)
    raise Unavailable(f"The node did not end its dream of night {nights} in {LOOKS * LOOK_S:g} s.")


async def _recall(memory: GraphMemory, question: Question, turns_of: Mapping[str, set[str]]) -> float:
    found = [turns_of[row["fingerprintId"]] for row in await memory.find(question.text, LIMIT)]
    return len(question.turns & set().union(*found)) / len(question.turns)


def _report(report: Report, name: str, awake: _Week, slept: _Week) -> None:
    turns = len(set().union(*awake.turns_of.values()))
    report.add(f"{name}_turns", turns, "turns")
    report.add(f"{name}_told", awake.stored, "memories")
    report.add(f"{name}_told_again", 100 * (1 - turns / awake.stored), "%")
    report.add(f"{name}_live_without_nights", len(awake.turns_of), "memories")
    report.add(f"{name}_live", len(slept.turns_of), "memories")
    report.add(f"{name}_of_two_turns", sum(len(turns) > 1 for turns in slept.turns_of.values()), "memories")
    report.add(f"{name}_recall_without_nights", awake.recall, "%")
    report.add(f"{name}_recall", slept.recall, "%")
