"""`thalweg bench drift`: whether drift tells when the matter changes, and what a correction does.

For each of a data set's conversations a node of its own is given the first half, finds the goal in it, and is asked for
the drift after each turn of the second half. For each other conversation a node on a copy of that store is asked after
each of its first turns. Then drift is corrected: the alignment of the first five results of neutral queries, and the
recall of the questions about what is stored, are measured before and after.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from processors.context_graph.rules.drift import MODERATE, SEVERE, WINDOW
from streams.errors import Refused, Unavailable
from thalweg.bench.graph_memory import WAITS, GraphMemory
from thalweg.bench.inject_marks import bundled_marks, read_projects
from thalweg.bench.recall_sets import Conversation, Question, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import SocketClient, running_node, scratch_directory

NOTICED_WITHIN = 30
"""Turns of the other conversation after which drift is to be severe."""
STORED = 100
"""Turns of the other conversation that are there when drift is corrected."""
CONFIDENCES = (0.7, 0.5, 0.3, 0.0)
"""Thresholds of confidence that are tried in turn for a goal."""
CUTS = (10, 5, 1)
SHARE, GAIN, FALL = Target(95.0, at_least=True), Target(0.02, at_least=True), Target(1.0)
NEUTRAL = """
what happened last weekend|a plan for next month|something about the family|how is work going
a book that was recommended|a trip to the mountains|feeling tired and stressed
music and concerts|what food do they like|a gift from a friend
learning something new|a health problem|pictures that were shared|an old memory from childhood|helping other people
what does she want to do|sports and exercise|pets and animals|money and shopping|the weather today
an important decision|a party with friends|art and painting|a movie to watch|moving to a new place
school and studies|a new job|volunteering in the community|being proud of something|thanks for the support
what are the kids doing|a hobby that relaxes|dreams and goals for the future|something funny|a difficult time
good news|dinner with the team|nature and camping|a celebration|dance and performance
a letter or message|taking a class|the house and the garden|reading before bed|a phone call
overcoming fear|a relationship|advice from a friend|holidays|games
"""


@dataclass
class _OwnHalf:
    """What a node said of the second half of its own conversation, after each turn of a whole window.

    `ids`: memory by turn of what is stored. Distances are in standard errors.
    """

    distances: list[float] = field(default_factory=list)
    is_mild: list[bool] = field(default_factory=list)
    ids: dict[str, str] = field(default_factory=dict)


@dataclass
class _Course:
    """What a node said of a pair. Distances are in standard errors, one after each turn of the other conversation."""

    own: _OwnHalf
    other: list[float] = field(default_factory=list)
    severe_after: int = NOTICED_WITHIN + 1
    strategy: str = ""
    gain: float = 0.0
    falls: dict[int, float] = field(default_factory=dict)


def measure_drift(dataset: str, embedder: str) -> Report:
    """Measure each pair of conversations, or of projects of transcripts. Raises Refused for less than two."""
    report = Report("drift", {"dataset": Path(dataset).name, "embedder": embedder})
    conversations = list(_matters(dataset))
    if len(conversations) < 2:
        raise Refused(f"Drift is measured on two conversations at least; {dataset} has {len(conversations)}.")
    courses: dict[tuple[int, int], _Course] = {}
    for one in range(len(conversations)):
        courses |= {(one, two): course for two, course in _measure_all(conversations, one, embedder).items()}
    for (one, two), course in courses.items():
        _report(report, f"{one}_to_{two}", course)
    if len(conversations) > 2:
        _report_thresholds(report, courses, len(conversations))
    return report


def _matters(dataset: str) -> Iterator[Conversation]:
    """The conversations of a data set, or the projects of a folder with transcripts, each text once."""
    path = Path(dataset)
    if not path.is_dir() or next(path.rglob("*.jsonl"), None) is None:
        yield from read_set(dataset)
        return
    for project in read_projects(path, bundled_marks()):
        first: dict[str, Turn] = {}
        for turn in project.turns:
            first.setdefault(turn.text, turn)
        yield Conversation(project.name, list(first.values()), [])


class _Memories(GraphMemory):
    """A node's memory of turns. `ids`: memory by turn."""

    def __init__(self, client: SocketClient, ids: Mapping[str, str]) -> None:
        super().__init__(client)
        self.ids = dict(ids)

    async def tell(self, name: str, turn: Turn) -> None:
        self.ids[name + turn.turn_id] = await self.store(turn.text)

    async def drift(self) -> dict[str, Any]:
        """What `get_alignment_drift` says of all that is stored. Raises Unavailable after WAITS calls."""
        for _ in range(WAITS):
            told = await self.call("get_alignment_drift")
            if not told.get("stale"):
                return told
        raise Unavailable("The node did not embed what was stored in time.")


def _measure_all(conversations: Sequence[Conversation], one: int, embedder: str) -> dict[int, _Course]:
    """The courses from one conversation to each other one, by the other's number."""
    with scratch_directory() as directory:
        own = asyncio.run(_watch_own(directory / "own", conversations[one], embedder))
        courses = {}
        for two, other in enumerate(conversations):
            if two != one:
                home = directory / str(two)
                shutil.copytree(directory / "own", home)
                courses[two] = asyncio.run(_measure(home, own, conversations[one], other, embedder))
                shutil.rmtree(home)
        return courses


@asynccontextmanager
async def _memories(home: Path, embedder: str, ids: Mapping[str, str]) -> AsyncIterator[_Memories]:
    with running_node(home, embedder=embedder, write_wait_s=4), closing(await SocketClient.open(home)) as client:
        await client.greet()
        yield _Memories(client, ids)


async def _watch_own(home: Path, conversation: Conversation, embedder: str) -> _OwnHalf:
    """Find the goal in the first half, and ask for the drift after each turn of the second one."""
    own, half = _OwnHalf(), len(conversation.turns) // 2
    async with _memories(home, embedder, {}) as memory:
        for turn in conversation.turns[:half]:
            await memory.tell(conversation.name, turn)
        await memory.embedded()
        await _bootstrap(memory.client)
        for place, turn in enumerate(conversation.turns[half:], 1):
            await memory.tell(conversation.name, turn)
            if place >= WINDOW:
                told = await memory.drift()
                own.distances.append(told["overall_drift"]["distance"])
                own.is_mild.append(told["severity"] in ("none", "mild"))
        own.ids = memory.ids
    return own


async def _measure(home: Path, own: _OwnHalf, first: Conversation, second: Conversation, embedder: str) -> _Course:
    """Ask for the drift after each of the other conversation's first turns, then correct it."""
    course = _Course(own)
    async with _memories(home, embedder, own.ids) as memory:
        for place, turn in enumerate(second.turns[:NOTICED_WITHIN], 1):
            await memory.tell(second.name, turn)
            told = await memory.drift()
            course.other.append(told["overall_drift"]["distance"])
            if told["severity"] == "severe":
                course.severe_after = min(course.severe_after, place)
        for turn in second.turns[NOTICED_WITHIN:STORED]:
            await memory.tell(second.name, turn)
        await memory.drift()
        await _correct(memory, course, first, second)
    return course


async def _bootstrap(client: SocketClient) -> None:
    """Find the goal, with less confidence where there must be."""
    for confidence in CONFIDENCES:
        arguments = {"name": "auto_bootstrap_north_star", "arguments": {"confidence_threshold": confidence}}
        answer = await client.request("tools/call", arguments)
        if "structuredContent" in answer and answer["structuredContent"]["success"]:
            return
    raise Unavailable("The node found no goal.")


async def _correct(memory: _Memories, course: _Course, first: Conversation, second: Conversation) -> None:
    """Correct, and measure what searches return before and after."""
    questions = [
        (question, gold)
        for conversation in (first, second)
        for question in conversation.questions
        if (gold := _gold(memory, conversation, question))
    ]
    before = await _searched(memory, questions)
    corrected = (await memory.call("trigger_drift_correction"))["correction_result"]
    after = await _searched(memory, questions)
    course.strategy = corrected["strategy_applied"]
    course.gain = after[0] - before[0]
    course.falls = {cut: before[1][cut] - after[1][cut] for cut in CUTS} if questions else {}


def _gold(memory: _Memories, conversation: Conversation, question: Question) -> set[str]:
    """The memories that answer it; empty where one of them is not stored."""
    ids = {memory.ids.get(conversation.name + turn, "") for turn in question.turns}
    return set() if "" in ids else ids


async def _searched(
    memory: _Memories, questions: Sequence[tuple[Question, set[str]]]
) -> tuple[float, dict[int, float]]:
    """The mean alignment of the first five results of neutral queries, and recall in percent by cut."""
    queries = [query for line in NEUTRAL.strip().splitlines() for query in line.split("|")]
    means = []
    for query in queries:
        if rows := await memory.find(query, 5):
            means.append(float(np.mean([row["thetaToNorthStar"] for row in rows])))
    found: dict[int, list[float]] = {cut: [] for cut in CUTS}
    for question, gold in questions:
        ids = [row["fingerprintId"] for row in await memory.find(question.text, max(CUTS))]
        for cut in CUTS:
            found[cut].append(len(gold.intersection(ids[:cut])) / len(gold))
    return float(np.mean(means)), {cut: 100 * float(np.mean(each)) for cut, each in found.items() if each}


def _report(report: Report, name: str, course: _Course) -> None:
    if distances := course.own.distances:
        report.add(f"{name}_at_most_mild", 100 * float(np.mean(course.own.is_mild)), "%", SHARE)
        report.add(f"{name}_own_distance_p95", float(np.percentile(distances, 95)), "errors")
        report.add(f"{name}_own_distance_max", max(distances), "errors")
    report.add(f"{name}_other_distance_max", max(course.other), "errors")
    report.add(f"{name}_severe_after", course.severe_after, "memories", Target(NOTICED_WITHIN))
    report.settings[f"{name}_strategy"] = course.strategy
    report.add(f"{name}_gain", course.gain, "alignment", GAIN)
    for cut, fall in course.falls.items():
        report.add(f"{name}_r{cut}_fall", fall, "points", FALL if cut == max(CUTS) else None)


def _report_thresholds(report: Report, courses: Mapping[tuple[int, int], _Course], count: int) -> None:
    """Thresholds chosen on the pairs of all conversations but one, and what they say of that one's pairs."""
    report.settings |= {"moderate": MODERATE, "severe": SEVERE}
    for left in range(count):
        chosen_on = [course for pair, course in courses.items() if left not in pair]
        own = [distance for course in chosen_on for distance in course.own.distances]
        severe = (max(own) + min(max(course.other) for course in chosen_on)) / 2
        moderate = (float(np.percentile(own, 95)) + severe) / 2
        mine = [course for pair, course in courses.items() if pair[0] == left]
        mild = [distance < moderate for course in mine for distance in course.own.distances]
        report.add(f"moderate_without_{left}", moderate, "errors")
        report.add(f"severe_without_{left}", severe, "errors")
        report.add(f"at_most_mild_without_{left}", 100 * float(np.mean(mild)), "%", SHARE)
        noticed = [max(course.other) >= severe for course in mine]
        report.add(f"severe_noticed_without_{left}", 100 * float(np.mean(noticed)), "%", Target(100.0, at_least=True))
