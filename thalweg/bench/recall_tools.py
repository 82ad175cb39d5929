"""`thalweg bench recall --through-tools`: what an agent gets back over MCP, of what it wrote over MCP.

Each conversation has a node of its own. With sessions its turns come as events with their time and session, as an
import brings them; without, each is one call of the tool that writes, and names no session. Each question is one call
of the tool that searches, with the limit that agents use. A row counts for the turn whose entry it is or whose text it
repeats, a turn once, at its best place.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from processors.context_graph.rules.memories import memory_id_of
from processors.talos.rules.identifiers import entry_id
from streams.codec import encode
from streams.errors import Unavailable
from streams.events import Event, wire_type
from streams.ids import uuid7
from streams.log import open_log
from streams.topics import MEMORY, with_partitions
from thalweg.bench.own_broker import wait_applied
from thalweg.bench.recall_sets import Conversation, Turn, read_set
from thalweg.bench.report import Report, Target
from thalweg.bench.scratch import environment, running_node, scratch_directory
from thalweg.settings import load

if TYPE_CHECKING:
    from mcp import Client

LIMIT = 10
"""What agents ask for: the tool's own default."""
NAMESPACE = "default"
TOKEN_CHARS = 4
APPLIED_S = 1800.0
TARGETS: Mapping[tuple[bool, str], Target] = {
    (True, "turn"): Target(89.0, at_least=True),
    (True, "session"): Target(96.5, at_least=True),
    (False, "turn"): Target(85.0, at_least=True),
    (False, "session"): Target(95.0, at_least=True),
}
"""(sessions are named, level) -> R@10 of LoCoMo's questions as a whole, with the default model."""


@dataclass(frozen=True, slots=True)
class _Toolset:
    """How a toolset keeps a text and finds it: its tools, their arguments, and where the ids stand."""

    write: str
    event_type: str
    about: Mapping[str, Any]
    id_of: Callable[[Event], str]
    id_written: str
    limit: str
    id_found: str
    query: str = "query"


_GRAPH = _Toolset(
    write="store_memory",
    event_type="context.memory.stored",
    about={},
    id_of=memory_id_of,
    id_written="fingerprintId",
    limit="topK",
    id_found="fingerprintId",
)
TOOLSETS: Mapping[str, _Toolset] = {
    "journal_query": _Toolset(
        write="journal_write",
        event_type="talos.journal.written",
        about={"category": "observation"},
        id_of=entry_id,
        id_written="entry_id",
        limit="limit",
        id_found="id",
    ),
    "search_graph": _GRAPH,
    "search_teleological": replace(_GRAPH, limit="max_results", id_found="id", query="query_content"),
}
"""By the tool that searches."""


@dataclass
class _Answers:
    """What the answers held: recall by (level, kind of question), and a number an answer of the rest."""

    recalls: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    rows: list[int] = field(default_factory=list)
    texts: list[int] = field(default_factory=list)
    tokens: list[float] = field(default_factory=list)
    durations_ms: list[float] = field(default_factory=list)

    def score(self, level: str, kind: str, found: Sequence[str], gold: frozenset[str]) -> None:
        if gold:
            share = len(gold.intersection(found)) / len(gold)
            for name in ("all", kind):
                self.recalls[level, name].append(share)


def measure_tools(
    dataset: str, name: str, questions: int | None = None, *, tool: str = "journal_query", sessions: bool = True
) -> Report:
    """Write the data set and ask its questions (at most this many) through the tools. `name`: of the embedder.

    `tool` searches. `sessions`: the turns come with their time and session; else each is written as it comes, and names
    none.
    """
    settings = {"dataset": Path(dataset).name, "embedder": name, "questions": questions or "all", "limit": LIMIT}
    report = Report("recall", settings | {"through": tool, "sessions": sessions})
    found = _Answers()
    for conversation in read_set(dataset):
        rest = None if questions is None else questions - len(found.rows)
        if rest == 0:
            break
        with scratch_directory() as directory:
            _measure(conversation, directory / "home", name, rest, found, tool, sessions=sessions)
    _report(report, found, sessions=sessions)
    return report


def _measure(
    conversation: Conversation,
    home: Path,
    name: str,
    questions: int | None,
    found: _Answers,
    tool: str,
    *,
    sessions: bool,
) -> None:
    variables = environment(home, embedder=name)
    turns = asyncio.run(_publish(variables, conversation.turns, TOOLSETS[tool])) if sessions else {}
    with running_node(home, embedder=name):
        if sessions:
            wait_applied(home, APPLIED_S)
        asyncio.run(_ask(conversation, home, variables, turns, questions, found, tool))


async def _publish(variables: dict[str, str], turns: Sequence[Turn], toolset: _Toolset) -> dict[str, Turn]:
    """The turns as events on the log, before a node reads it; record id -> turn."""
    settings = load({}, variables)
    events = {turn.turn_id: _event(turn, toolset) for turn in turns}
    log = open_log(settings.broker_url)
    await log.start()
    try:
        await log.create_topics(with_partitions(settings.partitions))
        await log.publish([encode(MEMORY.name, event) for event in events.values()], timeout_s=60.0)
    finally:
        await log.stop()
    return {toolset.id_of(events[turn.turn_id]): turn for turn in turns}


def _event(turn: Turn, toolset: _Toolset) -> Event:
    """What an import publishes of a turn: its text, time and session."""
    data = {"content": turn.text, **toolset.about}
    session = None if turn.session is None else session_id(turn)
    named = {} if session is None else {"session_id": session}
    kind = wire_type(toolset.event_type)
    return Event(str(uuid7()), "thalweg:bench", kind, NAMESPACE, turn.at, data | named, subject=session)


def session_id(turn: Turn) -> str:
    """The turn's session as the journal takes it."""
    return f"{turn.at:%Y-%m-%d}-{re.sub(r'[^A-Za-z0-9]+', '-', turn.session or '').strip('-')}"


async def _ask(
    conversation: Conversation,
    home: Path,
    variables: dict[str, str],
    turns: dict[str, Turn],
    questions: int | None,
    found: _Answers,
    tool: str,
) -> None:
    toolset = TOOLSETS[tool]
    async with _agent(variables) as agent:
        if not turns:
            for turn in conversation.turns:
                written = await _call(agent, toolset.write, {"content": turn.text, **toolset.about})
                turns.setdefault(written[toolset.id_written], turn)
            wait_applied(home, APPLIED_S)
        places = _TurnFinder(turns, toolset.id_found)
        names = {session_id(turn): turn.session for turn in turns.values() if turn.session is not None}
        for question in conversation.questions[:questions]:
            started = time.perf_counter()
            answer = await _call(agent, tool, {toolset.query: question.text, toolset.limit: LIMIT})
            found.durations_ms.append((time.perf_counter() - started) * 1000)
            rows = answer["results"]
            ranked = [said for row in rows if (said := places.turn_of(row)) is not None]
            of_rows = [said.session for said in ranked if said.session is not None]
            named = [names[each] for each in answer.get("sessions", ())[:LIMIT] if each in names]
            found.score("turn", question.kind, [said.turn_id for said in ranked], question.turns)
            found.score("session", question.kind, named or of_rows, question.sessions)
            found.score("session_of_rows", question.kind, of_rows, question.sessions)
            found.rows.append(len(rows))
            found.texts.append(len({" ".join(row["content"].lower().split()) for row in rows}))
            found.tokens.append(len(orjson.dumps(answer).decode()) / TOKEN_CHARS)


class _TurnFinder:
    """Which turn a row of an answer is: by its id, by those that stand with it, or by its text."""

    def __init__(self, turns: Mapping[str, Turn], id_found: str) -> None:
        self._by_id, self._id_found = turns, id_found
        self._by_text = {turn.text: turn for turn in reversed(list(turns.values()))}

    def turn_of(self, row: Mapping[str, Any]) -> Turn | None:
        """None for a row that holds no turn's text: an entity, a pattern."""
        for name in (row[self._id_found], *(other["id"] for other in row.get("also", ()))):
            if name in self._by_id:
                return self._by_id[name]
        content = row["content"]
        return self._by_text.get(content) or next(self._with(content), None) if content else None

    def _with(self, part: str) -> Iterator[Turn]:
        """Turns of which this is a part: an extracted sentence, the passage of a long text."""
        return (turn for text, turn in self._by_text.items() if len(part.split()) > 2 and part in text)


@asynccontextmanager
async def _agent(variables: dict[str, str]) -> AsyncIterator[Client]:
    """An MCP client over stdio: the pump that an agent starts."""
    from mcp import Client, StdioServerParameters

    async with Client(
        StdioServerParameters(command=sys.executable, args=["-m", "thalweg", "mcp"], env=variables)
    ) as agent:
        yield agent


async def _call(agent: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """The structured answer of a tool. Raises Unavailable for an error, and for a write that is only spooled."""
    answer = await agent.call_tool(tool, arguments)
    body = answer.structured_content
    if answer.is_error or body is None or not body.get("success") or body.get("spooled"):
        raise Unavailable(f"The node did not take a `{tool}`: {answer.content}")
    return body


def _report(report: Report, found: _Answers, *, sessions: bool) -> None:
    is_locomo = any(kind == "multi-hop" for _, kind in found.recalls)
    for level, kind in sorted(found.recalls, key=lambda key: key[1] != "all"):
        wanted = TARGETS.get((sessions, level)) if is_locomo and kind == "all" else None
        report.add(f"{level}_{kind}_r{LIMIT}", 100 * float(np.mean(found.recalls[level, kind])), "%", wanted)
    report.add("questions", len(found.rows), "")
    report.add("rows_per_answer", float(np.mean(found.rows)), "")
    report.add("distinct_texts_per_answer", float(np.mean(found.texts)), "")
    report.add("tokens_per_answer", float(np.mean(found.tokens)), "tokens")
    report.add("tokens_largest", max(found.tokens), "tokens")
    report.add_quantiles("query", found.durations_ms)
