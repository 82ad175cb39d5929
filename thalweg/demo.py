"""`thalweg demo`: the main job on the bundled example, with a report of its outcome.

A node as a process of its own, an import, an agent's session through a real MCP client over `thalweg mcp`, an
analyst's questions. Every number in the report is asked of the running system.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters

from storage.sql.run import run_sql
from streams.clock import SystemClock
from streams.errors import DemoFailed, NotRunning, SettingsError, ThalwegError
from streams.event_types.stages import PROGRESS
from streams.ids import uuid7
from streams.topics import DERIVED, MEMORY
from thalweg.bench.scratch import environment, running_node, scratch_directory
from thalweg.control.requests import ask
from thalweg.environment import process_environment
from thalweg.example import session_path
from thalweg.importing.command import run_import
from thalweg.process.store_access import snapshot_of
from thalweg.settings import Settings, load
from thalweg.terminal.show import working
from thalweg.terminal.show_demo import show_demo

ENVIRONMENT = ("THALWEG_EMBEDDER",)
"""Variables that count here too. The caller's broker and namespace do not: what the demo writes is not to keep."""
CALL_S = 30.0
CATCH_UP_S = 30.0
WRITE_WAIT_S = 30.0
"""A machine that is busy with other things makes the demo slow, and not a write `pending`."""
ENTRIES = (
    ("insight", "I realized that the sign of a UTC offset belongs to its minutes as well as to its hours."),
    ("observation", "Every gauge with a whole-hour offset was right; only Newfoundland and Marquesas were wrong."),
    ("decision", "Offsets are parsed into minutes once, at the border, and never as text after that."),
    ("reflection", "I should have looked at the data of one wrong gauge before I read the parser."),
)
FRICTION = {"description": "The test fixtures hide negative offsets", "category": "tooling"}
QUERY = "Which part of an offset does the sign belong to?"
QUESTIONS = (
    (
        "What did each session cost, sub-agents apart?",
        "SELECT s.source, coalesce(s.parent_session_id IS NOT NULL, false) AS is_sub_agent, "
        "left(coalesce(s.summary, s.goal), 38) AS about, round(s.duration_s) AS seconds, "
        "count(m.message_id) AS answers, coalesce(sum(m.output_tokens), 0)::BIGINT AS output_tokens "
        "FROM sessions s LEFT JOIN model_calls m ON m.namespace = s.namespace AND m.session_id = s.session_id "
        "GROUP BY ALL ORDER BY output_tokens DESC, source",
    ),
    (
        "Which tools were used, and how did it go?",
        "SELECT tool_name, calls, errors, round(p50_ms) AS p50_ms, round(p95_ms) AS p95_ms FROM tool_call_latencies "
        "ORDER BY calls DESC, tool_name",
    ),
    (
        "What got in the way: what tools reported beside what the agent wrote down?",
        "SELECT 'telemetry' AS known_from, tool_name || ': ' || coalesce(error_type, 'error') AS what, "
        "count(*) AS times FROM tool_calls WHERE is_error GROUP BY ALL "
        "UNION ALL SELECT 'memory', description, recurrence_count FROM friction_recurrence "
        "ORDER BY known_from DESC, times DESC, what",
    ),
)
MOMENTS = (
    "SELECT epoch(occurred_at) AS moment FROM session_events "
    "WHERE session_id NOT IN (SELECT session_id FROM talos_sessions) ORDER BY moment"
)
FACTS = (
    "SELECT replace(source, 'thalweg:stage/', '') AS stage, count(*) AS facts FROM events "
    f"WHERE topic = '{DERIVED.name}' AND event_type <> '{PROGRESS}' GROUP BY stage"
)


class Unmet(Exception):
    """The system answered, but not what it should; the message says what was expected."""


@dataclass
class DemoStep:
    """One thing that was done: how long it took, and what came of it. `kind` is `step` or `call`."""

    name: str
    kind: str
    ms: float = 0.0
    ok: bool = False
    detail: str = ""


def run_demo(flags: Mapping[str, Any], *, quiet: bool = False) -> dict[str, Any]:
    """Run all steps and print the report unless `quiet`; returns the report. `flags`: home, broker, embedder, or None.

    Without a home the data lies in a directory that is gone afterwards, and only the broker that `flags` name is used.
    Raises DemoFailed when a step failed, after the report is printed; the steps after it are left out.
    """
    with scratch_directory() as directory:
        home = Path(flags.get("home") or directory / "home").absolute()
        environment = {name: value for name, value in process_environment().items() if name in ENVIRONMENT}
        settings = load({**flags, "home": home}, environment)
        _refuse_running(home)
        with working(quiet) as announce:
            demo = _Demo(settings, announce)
            demo.run()
    report = demo.report()
    if not quiet:
        show_demo(report)
    failed = next((step for step in demo.steps if not step.ok), None)
    if failed is not None:
        raise DemoFailed(f"The demo failed: {failed.name}: {failed.detail}", report=report)
    return report


def _refuse_running(home: Path) -> None:
    try:
        ask(home, "status")
    except NotRunning:
        return
    raise SettingsError(f"A node runs on {home}: `thalweg stop` first, or leave out --home.")


class _Demo:
    """One run: what was done so far, and what the report will say."""

    def __init__(self, settings: Settings, announce: Callable[[str], None]) -> None:
        self.steps: list[DemoStep] = []
        self._settings = settings
        self._environ = environment(settings.home, embedder=settings.embedder, broker=settings.broker)
        self._node = running_node(
            settings.home, embedder=settings.embedder, broker=settings.broker, write_wait_s=WRITE_WAIT_S
        )
        self._announce = announce
        self._started = time.perf_counter()
        self._found: dict[str, Any] = {"broker": settings.broker_url, "query": QUERY}

    def run(self) -> None:
        """All steps; returns early after one that failed. A bug is raised."""
        try:
            self._run()
        except Exception as error:
            if all(step.ok for step in self.steps) or not _is_expected(error):
                raise

    def report(self) -> dict[str, Any]:
        ok = bool(self.steps) and all(step.ok for step in self.steps)
        return {
            "ok": ok,
            "seconds": time.perf_counter() - self._started,
            **self._found,
            "steps": [asdict(step) for step in self.steps],
        }

    @contextmanager
    def _step(self, name: str, kind: str = "step") -> Iterator[DemoStep]:
        step = DemoStep(name, kind)
        self.steps.append(step)
        self._announce(name)
        started = time.perf_counter()
        try:
            yield step
            step.ok = True
        except Exception as error:
            step.detail = getattr(error, "message", None) or str(error) or type(error).__name__
            raise
        finally:
            step.ms = (time.perf_counter() - started) * 1000

    def _run(self) -> None:
        with self._step("start a node") as step:
            process = self._node.__enter__()
            step.detail = f"process {process.pid}, on {self._settings.broker_url.split('://')[0]}"
        try:
            self._import()
            asyncio.run(self._run_agent())
            self._look()
        finally:
            with self._step("stop the node") as step:
                self._node.__exit__(None, None, None)
                _expect(process.returncode == 0, f"exit code 0, not {process.returncode}")
                step.detail = "everything saved, exit code 0"

    def _import(self) -> None:
        with self._step("import the example") as step:
            done = run_import(self._settings, "claude-code", [session_path()], quiet=True)
            _expect(done["applied"] and done["events"] > 0, "all events applied")
            step.detail = f"{done['lines']} lines: {done['events']} events, {done['unreadable']} unreadable"
        self._found["imported"] = {name: done[name] for name in ("lines", "events", "unreadable", "bytes")}
        before = self._rows("SELECT count(*) FROM session_events")
        with self._step("import it again") as step:
            run_import(self._settings, "claude-code", [session_path()], quiet=True)
            after = self._rows("SELECT count(*) FROM session_events")
            _expect(after == before, "no row more than before")
            [[repeats]] = self._rows("SELECT count(*) FROM duplicates")
            step.detail = f"no row more; {repeats} repeats recognised"

    async def _run_agent(self) -> None:
        """A Talos session through `thalweg mcp`, as any MCP client has it."""
        session_id = f"{SystemClock().now():%Y-%m-%d}-demo-{uuid7().hex[-8:]}"
        server = StdioServerParameters(command=sys.executable, args=["-m", "thalweg", "mcp"], env=self._environ)
        async with AsyncExitStack() as stack:
            with self._step("connect an agent over stdio") as step:
                client = await stack.enter_async_context(Client(server, mode="legacy", read_timeout_seconds=CALL_S))
                tools = (await client.list_tools()).tools
                step.detail = f"{len(tools)} tools"
            opened = await self._call(
                client, "session_open", session_id=session_id, goal="Fix the sign of negative UTC offsets"
            )
            _expect("pending" not in opened, "the session decided")
            for category, text in ENTRIES:
                await self._call(
                    client, "journal_write", content=text, category=category, session_id=opened["session_id"]
                )
            noted = [
                await self._call(client, "friction_log", **FRICTION, session_id=opened["session_id"]) for _ in range(2)
            ]
            counts = [answer["recurrence_count"] for answer in noted]
            self._mark(noted[1]["is_recurring"] and counts[1] == counts[0] + 1, f"recognised: met {counts[1]} times")
            found = await self._call(client, "journal_query", query=QUERY, limit=3)
            self._found["hits"] = [
                {name: hit[name] for name in ("entity_type", "content", "score")} for hit in found["results"]
            ]
            self._mark(
                any(hit["content"] == ENTRIES[0][1] for hit in found["results"]),
                f"{found['total_found']} found, among them the entry that says it",
            )
            if self._settings.embedder != "none":  # without vectors there is nothing that it could compare
                await self._retrieve(client)
            closed = await self._call(
                client,
                "session_close",
                session_id=opened["session_id"],
                goal_achieved=True,
                summary="Fixed, with a test.",
            )
            self._mark("pending" not in closed, f"{closed['tool_calls']} tool calls, {closed['duration_seconds']} s")
        with self._step("wait for every stage") as step:
            token = {MEMORY.name: closed["freshness"][MEMORY.name]}
            stages = list(ask(self._settings.home, "status")["stages"])
            waited = ask(self._settings.home, "wait", freshness=token, stages=stages, timeout_s=CATCH_UP_S)
            _expect(waited["applied"], f"all of {', '.join(stages)} within {CATCH_UP_S:g} s")
            step.detail = f"all {len(stages)} have caught up"

    async def _retrieve(self, client: Client) -> None:
        """Snippets of what the session has stored, as an agent takes them to write from."""
        voice = await self._call(client, "inner_voice.retrieve", query=QUERY, top_k=3)
        self._found["snippets"] = [
            {name: snippet[name] for name in ("table", "trust_tier", "text", "score")} for snippet in voice["snippets"]
        ]
        seen = voice["diagnostics"]
        rows = f"{seen['kg_candidates']} known and {seen['thought_candidates']} thought"
        self._mark(bool(voice["snippets"]), f"{seen['k_ret']} snippets of {rows}, floor {seen['floor_used']:g}")

    async def _call(self, client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
        with self._step(tool, "call"):
            result = await client.call_tool(tool, arguments)
            answer: dict[str, Any] = result.structured_content or {}
            _expect(
                not result.is_error and answer.get("success", True) is True,
                f"success; it answered {answer.get('message', answer)}",
            )
            return answer

    def _mark(self, holds: bool, detail: str) -> None:
        """Say of the call just made what it answered, and whether it should have."""
        self.steps[-1].detail, self.steps[-1].ok = detail, holds
        _expect(holds, detail)

    def _look(self) -> None:
        """What an operator and an analyst see."""
        with self._step("answer three questions in SQL") as step:
            self._found["answers"] = [self._answer(question, sql) for question, sql in QUESTIONS]
            self._found["moments"] = [moment for [moment] in self._rows(MOMENTS)]
            _expect(all(answer["rows"] for answer in self._found["answers"]), "rows for each question")
            step.detail = "read-only, over a snapshot"
        with self._step("find the line that was cut off") as step:
            letters = ask(self._settings.home, "dlq_list")["dead_letters"]
            [letter] = [letter for letter in letters if session_path().name in letter["error_message"]]
            shown = ask(self._settings.home, "dlq_show", id=letter["dead_letter_id"])
            _expect(shown["value"].encode() in session_path().read_bytes(), "the bytes of the file")
            self._found["dead_letter"] = {
                "reason": letter["error_message"],
                "value": shown["value"],
                "bytes": letter["value_bytes"],
            }
            step.detail = f"a dead letter, all {letter['value_bytes']} bytes"
        with self._step("ask how far each part is") as step:
            status = ask(self._settings.home, "status")
            _expect(status["status"] == "green", f"green; {'; '.join(status['problems'])}")
            step.detail = status["status"]
        facts = dict(self._rows(FACTS))
        self._found["stages"] = {name: {**part, "facts": facts.get(name, 0)} for name, part in status["stages"].items()}
        self._found |= {name: status[name] for name in ("topics", "materialiser", "indexes", "embedder")}

    def _answer(self, question: str, sql: str) -> dict[str, Any]:
        answer = run_sql(snapshot_of(self._settings, 0.0).path, sql)
        return {
            "question": question,
            "sql": sql,
            "columns": answer.columns,
            "rows": answer.rows,
            "ms": answer.elapsed_ms,
        }

    def _rows(self, sql: str) -> list[list[Any]]:
        return list(self._answer("", sql)["rows"])


def _expect(holds: bool, expected: str) -> None:
    if not holds:
        raise Unmet(f"expected: {expected}")


def _is_expected(error: BaseException) -> bool:
    """Whether this is the system's own answer, not a bug of the demo. The MCP client wraps what is raised inside it."""
    if isinstance(error, BaseExceptionGroup):
        return all(_is_expected(inner) for inner in error.exceptions)
    return isinstance(error, ThalwegError | MCPError | Unmet | TimeoutError)
