"""The wall between namespaces (I10): whatever is asked in one, no answer holds an id, a text or a number of another.

The test walks what there is: a tool, resource, command or table that is added without data in `two_namespaces` fails.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from mcp_ingress.inventory import find_tools
from mcp_ingress.resource import find_resources
from mcp_ingress.tool import Tool
from storage.sql.run import run_sql
from streams.event_types.cognitive import WM_ARCHIVED
from tests.security.json_values import lists, steady
from tests.security.questions import ask_all, own_reads
from tests.security.side import Side
from tests.security.stored_rows import Stored, read_rows, tokens_of, values
from tests.security.two_namespaces import WORDS, EagerNode, fill, settle
from tests.terminal.test_json import commands as all_commands
from thalweg.cli import cli
from thalweg.control import control
from thalweg.process.node import Node
from thalweg.settings import Settings

NOT_FED = {
    "misplaced_records": "only a client with another partitioner fills it",
}
"""Tables without a row, and why."""
OWNERS_TABLES = {"spaces", "live_spaces", "dead_letter_marks", "dead_letter_states"}
"""Tables about the whole node, whose rows are of the operator's own namespace."""
WITHOUT_DATA = {
    "ping": "it says that the node is there",
    "store_dual_judge_scores": "scores of what its caller has sent",
    "get_golden_test_results": "figures only; `_figures_are_of_ones_own` looks at them",
    "session_open": "counts only; `_an_empty_namespace_stays_empty` looks at them",
    "session_close": "as `session_open`",
    "agreement": "as `get_golden_test_results`",
    "update_synergy_matrix": "how 78 numbers of the caller's own namespace changed",
    "trigger_recalibration": "as `update_synergy_matrix`",
    "get_threshold_status": "figures only",
    "get_calibration_metrics": "figures only",
    "why": "ranks and scores of what it was asked about",
    "get_graph_manifest": "what the node is made of, and which of its parts answer",
    "get_memetic_status": "counts and figures only",
    "utl_status": "as `get_memetic_status`",
    "get_alignment_drift": "as `get_memetic_status`, and the id of the goal, a function of the namespace",
    "trigger_drift_correction": "as `get_memetic_status`",
    **dict.fromkeys(("get_kuramoto_sync", "adjust_coupling", "get_ego_state"), "as `get_memetic_status`"),
    **dict.fromkeys(
        ("get_neuromodulation_state", "adjust_neuromodulator", "get_steering_feedback"), "as `get_memetic_status`"
    ),
    "get_dream_status": "as `get_memetic_status`",
    "abort_dream": "it has the id of a dream only while that goes on",
    "request": "what the operator has sent, and whether it was applied",
}
"""What answers with nothing that is stored, and why."""
ALWAYS_EMPTY = {
    *(("session_start", ".session.themes"), ("store_dual_judge_scores", ".failed_documents")),
    ("get_autonomous_status", ".recommendations"),
}
"""Lists of answers in which nothing is: a new session has no themes, no judge fails here, and nothing is to be done."""
SHORT_LIVED = {("get_workspace_status", f".{name}") for name in ("candidates", "conflict_memories")}
"""Lists in which something is for five seconds."""
OF_OWN_CALLS = {"get_autonomous_status"}
"""What tells of the calls that its own namespace has made, so that it says more when it is asked again."""
OWNERS = {"status", "stop", "wait", "snapshot", "snapshot_to", "export", "spaces", "reembed", "drop_spaces"}
OWNERS |= {"dlq_list", "dlq_show", "dlq_replay", "dlq_drop", "stored"}
"""Control requests about the whole node: the directory's owner sees every namespace."""
COMMANDS = {
    "search": "search",
    "why": "why",
    "hook": "hook",
    "import": "import",
    "memory import-ground-truth": "request",
    "memory import-golden-set": "request",
    "memory archive": "request",
    "memory correct": "request",
    "memory retract": "request",
    "dlq list": "dlq_list",
    "dlq replay": "dlq_replay",
    "dlq drop": "dlq_drop",
    "mcp": "door",
    "call": "door",
    "up": "door",
}
"""Commands that take a namespace, and what they ask."""
KINDS: dict[str, tuple[str, ...]] = {
    "session_id": ("talos_session", "conversation", "dialogue", "run"),
    "belief_id": ("belief",),
    "old_belief_id": ("belief",),
    "entity_id": ("entity",),
    "tension_id": ("tension",),
    "pattern_id": ("pattern", "talos_pattern"),
    "source_ids": ("number",),
    "query_id": ("query",),
    "external_room_id": ("room",),
    "id": ("remembered", "belief", "record", "talos_session", "conversation", "run"),
    "session": ("talos_session", "conversation", "run"),
    "memory_id": ("graph_memory",),
    "source": ("graph_memory",),
    "target": ("graph_memory",),
    "query_vector_id": ("graph_memory", "vector"),
    "result_vector_id": ("graph_memory", "vector"),
    "profile_id": ("profile",),
    "parent_goal_id": ("goal",),
}
"""What each argument that is an id names; an id of each of these kinds is given to it."""
CONNECTIONS, TURNS = 50, 8
"""Connections of one node at once, and how many of them share the questions among them."""
NOBODYS = "00000000-0000-5000-8000-000000000000"


@pytest.fixture
async def node(broker_url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Node]:
    monkeypatch.setenv("SURR_ENABLE_INNER_VOICE", "1")
    node = EagerNode(
        Settings(
            home=tmp_path / "home",
            broker=broker_url or "",
            embedder="hashing",
            partitions=4,
            rate_limit=1e6,
            vector_wait_s=3,
        )
    )
    await node.start()
    yield node
    await node.stop()


@pytest.mark.process
@pytest.mark.timeout(600)
async def test_no_answer_holds_anything_of_another_namespace(node: Node, tmp_path: Path) -> None:
    north, south, empty = [
        await Side(node, *names).connected()
        for names in (("north", "boreal"), ("south", "austral"), ("empty", "nothing"))
    ]
    empty.ids = {kind: [NOBODYS] for kinds in KINDS.values() for kind in kinds} | {"record": [NOBODYS]}
    await ask_all(empty)
    await asyncio.gather(fill(north, tmp_path), fill(south, tmp_path))
    await asyncio.gather(ask_all(north), ask_all(south))
    await settle(node)
    stored = Stored(
        {
            side.namespace: await node.running.store.reader.run(lambda cursor, side=side: read_rows(cursor, side))
            for side in (north, south)
        }
    )
    _every_table_is_told_apart(stored, north, south)
    _everything_was_asked(north, stored)
    _everything_was_asked(south, stored)
    _figures_are_of_ones_own(north, south)
    await _an_empty_namespace_stays_empty(empty, north)
    await _the_owners_sql_shows_both(node)
    await _each_of_fifty_connections_sees_its_own(node, stored, north, south)
    for side, other in ((south, north), (north, south)):
        before = await node.running.store.reader.run(lambda cursor, other=other: read_rows(cursor, other))
        await _ids_of_the_other_are_unknown(side, other)
        await settle(node)
        after = await node.running.store.reader.run(lambda cursor, other=other: read_rows(cursor, other))
        changed = [table for table in before if before[table] != after[table]]
        assert not changed, f"calls in {side.namespace} changed {changed} of {other.namespace}"
        for question in side.questions:
            leaked = stored.leak(question, other)
            assert not leaked, f"{question.name} {question.given} tells {side.namespace} of {leaked[:5]}"


def _every_table_is_told_apart(stored: Stored, north: Side, south: Side) -> None:
    """Each table holds something of both, and a row says nothing of a namespace that is not its own."""
    for side, other in ((north, south), (south, north)):
        own, foreign = stored.only_in(side.namespace), stored.only_in(other.namespace)
        for table, rows in stored.tables[side.namespace].items():
            found = set(values(rows))
            assert not found & foreign, (
                f"{table} has rows of {side.namespace} with {sorted(found & foreign, key=str)[:5]}"
            )
            assert not any(other.mark in value for value in found if isinstance(value, str)), f"{table} mixes texts"
            if table in NOT_FED:
                assert not rows, f"{table} is fed: let two_namespaces do so"
            elif table not in OWNERS_TABLES:
                assert found & own, (
                    f"{table} holds nothing by which {side.namespace} is recognised: extend two_namespaces"
                )


async def _the_owners_sql_shows_both(node: Node) -> None:
    """A snapshot is the whole store's.

    What of it is of no namespace has no texts, so that a condition on the namespace is enough.
    """
    snapshot, _ = await node.control.snapshots.get(0.0)
    answer = await asyncio.to_thread(run_sql, snapshot.path, "SELECT DISTINCT namespace FROM journal ORDER BY 1")
    assert answer.rows == [["north"], ["south"]]

    def shared_rows(cursor: Any) -> dict[str, str]:
        names = cursor.execute(
            "SELECT table_name FROM duckdb_columns() WHERE schema_name = 'main' GROUP BY 1 "
            "HAVING NOT bool_or(column_name = 'namespace')"
        ).fetchall()
        return {name: str(cursor.execute(f'SELECT * FROM "{name}"').fetchall()) for (name,) in names}

    for table, rows in (await node.running.store.reader.run(shared_rows)).items():
        assert "boreal" not in rows and "austral" not in rows, f"{table} has texts of no namespace"


def _everything_was_asked(side: Side, stored: Stored) -> None:
    """Each tool, resource and command about a namespace has answered with something of the caller's own that it was not
    asked with, and each list in an answer has held something.
    """
    own = stored.only_in(side.namespace)
    with_data = {
        question.name.partition("?")[0]
        for question in side.questions
        if (tokens_of(question.answer) - tokens_of(question.given)) & own
    }
    by_namespace = control.COMMANDS - OWNERS
    assert {*find_tools().tools, *find_resources().resources, *by_namespace} == with_data | set(WITHOUT_DATA)
    empty = {place for place, is_full in list_contents(side).items() if not is_full}
    assert empty - SHORT_LIVED == ALWAYS_EMPTY, "lists of answers in which nothing ever was: extend two_namespaces"
    commands = {
        name.removeprefix("thalweg ")
        for name, command in all_commands(cli)
        if any(option.name == "namespace" for option in command.params)
    }
    assert commands == set(COMMANDS) and set(COMMANDS.values()) <= control.COMMANDS | {"import", "door"}


def list_contents(side: Side) -> dict[tuple[str, str], bool]:
    """(what was asked, path of a list in its answers) -> whether it ever held something."""
    contents: dict[tuple[str, str], bool] = {}
    for question in side.questions:
        for path, is_full in lists(question.answer):
            place = question.name.partition("?")[0], path
            contents[place] = is_full or contents.get(place, False)
    return contents


def _figures_are_of_ones_own(north: Side, south: Side) -> None:
    """What is counted is counted in one namespace."""
    tested = {
        side.mark: [
            question.answer["queries_tested"]
            for question in side.questions
            if question.name == "get_golden_test_results"
        ]
        for side in (north, south)
    }
    assert tested == {"boreal": [50], "austral": [51]}
    for side in (north, south):
        [report] = [question.answer["report"] for question in side.questions if question.name == "agreement"]
        assert report["judged"] == 1 and [one["query_id"] for one in report["differing"]] == [42], report
        assert {one["document_id"] for one in report["differing_documents"]} == set(side.ids["document"]), report


async def _an_empty_namespace_stays_empty(empty: Side, other: Side) -> None:
    """Where nothing was said the answers are what they were before others said anything.

    No count, score or place is of them.
    """
    before = list(empty.questions)
    await ask_all(empty)
    for first, second in zip(before, itertools.islice(empty.questions, len(before), None), strict=True):
        assert first.name in OF_OWN_CALLS or steady(first.answer) == steady(second.answer), (
            f"{first.name} {first.given}: the answer depends on other namespaces"
        )
    session = other.ids["talos_session"][-1]
    opened = await empty.ok("session_open", session_id=session, goal="Look around")
    assert opened["inherited_count"] == 0, opened
    [said_there] = [question.given for question in other.questions if question.name == "friction_log"][:1]
    noted = await empty.ok("friction_log", **said_there)
    assert (noted["is_recurring"], noted["recurrence_count"], noted["similar_frictions"]) == (False, 1, []), noted
    closed = await empty.ok("session_close", session_id=session)
    assert closed["tool_calls"] == 1 and closed["token_count"] == 0, closed


async def _each_of_fifty_connections_sees_its_own(node: Node, stored: Stored, north: Side, south: Side) -> None:
    """Each is in a namespace of its own: they write the same words at once, then ask every tool in turns."""
    sides = [await Side(node, f"client-{number}", f"mark{number:02}x").connected() for number in range(CONNECTIONS - 2)]
    at_once = asyncio.Semaphore(TURNS)

    async def ask(number: int, side: Side) -> None:
        async with at_once:
            for tool, arguments in itertools.islice(own_reads(side), number % TURNS, None, TURNS):
                await side.call(tool, **arguments)
            found = await side.ok("journal_query", query=WORDS, limit=50)
            assert {row["content"] for row in found["results"]} == {side.say(WORDS)}, side.namespace

    for side in sides:
        side.ids = {kind: [NOBODYS] for kinds in KINDS.values() for kind in kinds} | {"record": [NOBODYS]}
    await asyncio.gather(*(side.ok("journal_write", content=side.say(WORDS), category="insight") for side in sides))
    await settle(node)
    await asyncio.gather(*(ask(number, side) for number, side in enumerate(sides)))
    asked = {question.name for side in sides for question in side.questions}
    assert {tool for tool, _ in own_reads(sides[0])} <= asked
    marks = {side.mark: side for side in sides}
    for side in sides:
        for question in side.questions:
            leaked = [*stored.leak(question, north), *stored.leak(question, south)]
            text = orjson.dumps(question.answer).decode()
            leaked += [mark for mark, other in marks.items() if other is not side and mark in text]
            assert not leaked, f"{question.name} {question.given} tells {side.namespace} of {leaked[:5]}"


def id_arguments(schema: Any) -> Iterator[str]:
    """The arguments that name something which is stored."""
    named = schema.get("properties", {})
    yield from (
        argument
        for argument, declared in named.items()
        if (argument.endswith(("_id", "_ids")) and declared["type"] != "integer")
        or argument in ("id", "session", "source", "target")
    )


Ask = Callable[[Any], Awaitable[dict[str, Any]]]


def id_questions(side: Side) -> Iterator[tuple[str, str, bool, Ask]]:
    """Everything that takes an id: its name, the kind of id, whether it only reads, and how it is asked about one.

    The tools come last: a call that names a session makes it one of the caller's own.
    """
    good = {question.name: question.given for question in side.questions if "error_code" not in question.answer}
    for kind in ("record", "talos_session", "conversation", "run"):
        yield "why", kind, True, lambda given: side.control("why", query=WORDS, record_id=given)
    yield "memory://l0-raw", "dialogue", True, lambda given: side.read(f"memory://l0-raw?session_id={given}")
    for kind, field in (("record", ""), ("belief", ""), ("conversation", "?field=summary")):
        yield (
            "thalweg://memory",
            kind,
            True,
            lambda given, field=field: side.read(f"thalweg://memory/{given}{field}"),  # type: ignore[misc]
        )
    yield "archive", "item", False, lambda given: side.control("request", type=WM_ARCHIVED, data={"item_id": given})
    for tool in find_tools().tools.values():
        for argument in sorted(set(id_arguments(tool.input_schema))):
            for kind in KINDS[argument]:

                def ask(given: Any, tool: Tool = tool, argument: str = argument) -> Awaitable[dict[str, Any]]:
                    return side.call(
                        tool.name, **{**good[tool.name], argument: [given] if argument.endswith("_ids") else given}
                    )

                yield tool.name, kind, tool.kind == "read", ask


async def _ids_of_the_other_are_unknown(side: Side, other: Side) -> None:
    """An id of another namespace is answered as one that nobody has ever given: reads and refusals in the same words.

    What writes comes after what reads, and last the tool that takes any id for one of its own.
    """
    every = [
        value
        for kind, values in other.ids.items()
        for value in values
        if isinstance(value, str) and value not in side.ids[kind]
    ]
    found = await side.ok(
        "graph_query",
        cypher="MATCH (n) WHERE n.id IN $ids OPTIONAL MATCH (n)-[r]-(m) RETURN n, m",
        parameters={"ids": every},
    )
    assert found["rows"] == [], found["rows"][:3]
    numbers = itertools.count(100)
    for name, kind, only_reads, ask in sorted(
        id_questions(side), key=lambda question: (not question[2], question[0] == "session_open")
    ):
        for given in {
            str(each): each for each in (other.ids[kind][0], other.ids[kind][-1]) if each not in side.ids[kind]
        }.values():
            nobodys = given + next(numbers) if isinstance(given, int) else f"{given[:-3]}{next(numbers)}"
            unknown, answer = await ask(nobodys), await ask(given)
            assert answer.get("error_code") == unknown.get("error_code"), (name, given, answer)
            if only_reads:
                answers = [
                    orjson.dumps(steady(each)).decode().replace(str(of), "?")
                    for each, of in ((unknown, nobodys), (answer, given))
                ]
                assert answers[0] == answers[1], (
                    f"{name} answers otherwise about {kind} {given} than about what there is not"
                )
