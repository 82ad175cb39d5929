"""An agent's session from end to end: the real MCP client over stdio and over HTTP, the real node, the real log."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest
from mcp import Client, MCPError
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client
from mcp.types import CallToolResult

from mcp_ingress.door import REQUEST_ID_META
from streams.clock import SystemClock
from tests.e2e.program import Program
from tests.kafka.rig.broker import free_port
from tests.node_process import NodeProcess
from tests.patience import PATIENCE_S
from thalweg.control.requests import ask

pytestmark = pytest.mark.timeout(300)

SESSION = f"{SystemClock().now():%Y-%m-%d}-release"
FRICTION = {"description": "The build cache is stale again", "category": "tooling"}


@asynccontextmanager
async def over_stdio(program: Program) -> AsyncIterator[Client]:
    """`thalweg mcp`, which starts the node when none runs."""
    server = StdioServerParameters(command=sys.executable, args=["-m", "thalweg", "mcp"], env=program.env)
    async with Client(server, mode="legacy") as client:
        yield client


@asynccontextmanager
async def over_http(program: Program) -> AsyncIterator[Client]:
    """A node with `--http`."""
    port = free_port()
    node = NodeProcess(program.home, program.env.get("THALWEG_BROKER"), THALWEG_HTTP=str(port))
    node.start()
    try:
        http_client = create_mcp_http_client(headers=node.bearer())
        async with (
            http_client,
            Client(streamable_http_client(f"http://127.0.0.1:{port}/mcp", http_client=http_client)) as client,
        ):
            yield client
    finally:
        node.stop()


WAYS = {"stdio": over_stdio, "http": over_http}


NOT_YET = ("pending", "stale", "spooled", "degraded")
"""What an answer says that did not wait for all it was to show: true, and no error, when a machine is slow."""


async def answered(
    client: Client, tool: str, arguments: dict[str, Any], meta: dict[str, Any] | None = None
) -> CallToolResult:
    """The answer to a call that was in time: of one that was not, the call is made again, under its own request id."""
    meta = {REQUEST_ID_META: str(uuid4()), **(meta or {})}
    deadline = time.monotonic() + PATIENCE_S
    while True:
        result = await client.call_tool(tool, arguments, meta=meta)
        if not _is_early(result) or time.monotonic() > deadline:
            return result
        await asyncio.sleep(0.1)


def _is_early(result: CallToolResult) -> bool:
    body = result.structured_content or {}
    if result.is_error:
        return body.get("stale") is True or "did not answer within" in str(body)
    return any(said.get(note) for said in (body, body.get("diagnostics", {})) for note in NOT_YET)


async def call(client: Client, tool: str, meta: dict[str, Any] | None = None, /, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that succeeds."""
    result = await answered(client, tool, arguments, meta)
    assert not result.is_error, result.structured_content
    assert result.structured_content is not None
    return result.structured_content


async def refused(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The structured answer of a call that is refused."""
    result = await answered(client, tool, arguments)
    assert result.is_error and result.structured_content is not None, result
    return result.structured_content


async def test_each_agent_that_names_no_session_has_a_connection_and_none_has_a_session(thalweg: Program) -> None:
    async with over_stdio(thalweg) as first, over_stdio(thalweg) as second:
        for number in range(2):
            for said, client in (("first", first), ("second", second)):
                text = f"I realized that the {said} press jams at sheet {number}."
                written = await call(client, "journal_write", content=text, category="insight")
        thalweg.wait_for(written)
        of_entries = "FROM documents WHERE kind = 'JournalEntry' GROUP BY connection"
        texts = thalweg.sql(f"SELECT list(text ORDER BY text) {of_entries} ORDER BY 1")
        assert thalweg.sql("SELECT count(*) FROM sessions") == [[0]]
    assert texts == [
        [[f"I realized that the {said} press jams at sheet {number}." for number in range(2)]]
        for said in ("first", "second")
    ]


@pytest.mark.parametrize("way", WAYS)
async def test_a_session_from_open_to_close_answers_what_was_stored(thalweg: Program, way: str) -> None:
    async with WAYS[way](thalweg) as client:
        opened = await call(client, "session_open", session_id=SESSION, goal="Ship the release")
        assert opened["inherited_count"] == 0 and "pending" not in opened
        written = [
            await call(client, "journal_write", content=text, category="insight", session_id=SESSION)
            for text in (
                "I realized that the parser loses its place.",
                "I realized that retries hide faults.",
                "Readers never block.",
            )
        ]
        assert len({answer["entry_id"] for answer in written}) == 3
        frictions = [await call(client, "friction_log", **FRICTION, session_id=SESSION) for _ in range(3)]
        assert [answer["recurrence_count"] for answer in frictions] == [1, 2, 3]
        assert [answer["is_recurring"] for answer in frictions] == [False, True, True]
        assert len({answer["friction_id"] for answer in frictions}) == 3
        token = {"thalweg/freshness": written[0]["freshness"]}
        found = await call(client, "journal_query", token, query="which part loses its place")
        assert not found.get("stale")
        assert any("the parser loses its place" in result["content"] for result in found["results"])
        closed = await call(client, "session_close", session_id=SESSION, goal_achieved=True, summary="Shipped.")
        assert closed["duration_seconds"] is not None and closed["requires_reflection"]
        assert closed["token_count"] is not None and closed["tool_calls"] is not None
        assert thalweg.sql("SELECT count(*) FROM journal") == [[3]]
        assert thalweg.sql("SELECT recurrence_count FROM friction_recurrence") == [[3]]
        assert thalweg.sql("SELECT goal, source FROM sessions WHERE ended_at IS NOT NULL") == [
            ["Ship the release", "talos"]
        ]


@pytest.mark.parametrize("way", WAYS)
async def test_every_mistake_is_answered_with_what_would_work(thalweg: Program, way: str) -> None:
    async with WAYS[way](thalweg) as client:
        with pytest.raises(MCPError, match="Did you mean 'friction_log'") as unknown:
            await client.call_tool("friction_lgo", {})
        assert unknown.value.code == -32602
        undeclared = await refused(client, "friction_log", **FRICTION, severity="high")
        assert "severity" in undeclared["message"] and undeclared["error_code"] == "invalid_argument"
        unknown_category = await refused(client, "journal_write", content="x", category="rant")
        assert unknown_category["error_code"] == "unknown_category"
        badly_named = await refused(client, "session_open", session_id="tuesday", goal="x")
        assert badly_named["error_code"] == "invalid_session_id" and "YYYY-MM-DD-slug" in badly_named["expected_format"]
        await call(client, "session_open", session_id=SESSION, goal="first")
        taken = await refused(client, "session_open", session_id=SESSION, goal="second")
        assert taken["error_code"] == "session_exists"
        again = await call(client, "session_open", session_id=taken["suggested_session_id"], goal="second")
        assert again["session_id"] == f"{SESSION}-2"


async def test_of_two_agents_that_open_one_session_at_once_one_wins_and_the_other_is_told(thalweg: Program) -> None:
    async with AsyncExitStack() as stack:
        agents = [await stack.enter_async_context(over_stdio(thalweg)) for _ in range(2)]
        arguments = [{"session_id": SESSION, "goal": f"of agent {number}"} for number in range(2)]
        results = await asyncio.gather(
            *(answered(agent, "session_open", sent) for agent, sent in zip(agents, arguments, strict=True))
        )
        winners = [number for number, result in enumerate(results) if not result.is_error]
        assert len(winners) == 1
        loser = results[1 - winners[0]].structured_content
        assert (
            loser is not None
            and loser["error_code"] == "session_exists"
            and loser["suggested_session_id"] == f"{SESSION}-2"
        )
        assert thalweg.sql("SELECT goal FROM sessions") == [[f"of agent {winners[0]}"]]


async def test_two_agents_that_start_at_once_share_one_node(thalweg: Program) -> None:
    async def write(number: int) -> dict[str, Any]:
        async with over_stdio(thalweg) as client:
            return await call(client, "journal_write", content=f"Agent {number} was here.", category="observation")

    await asyncio.gather(*(write(number) for number in range(3)))
    assert thalweg.sql("SELECT count(*) FROM journal") == [[3]]
    assert thalweg("status", "--json").json()["broker"]
    async with asyncio.timeout(PATIENCE_S):
        while ask(thalweg.home, "status")["clients"] > 1:  # the node sees their ends one after the other
            await asyncio.sleep(0.05)


async def test_a_call_with_the_same_request_id_has_one_effect(thalweg: Program) -> None:
    async with over_stdio(thalweg) as client:
        meta = {"thalweg/request_id": "once"}
        first = await call(client, "journal_write", meta, content="Only once.", category="insight")
        again = await call(client, "journal_write", meta, content="Only once.", category="insight")
        assert first["entry_id"] == again["entry_id"]
        assert thalweg.sql("SELECT count(*) FROM journal") == [[1]]
