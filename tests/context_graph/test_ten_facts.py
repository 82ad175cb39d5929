"""An agent that knows nothing but tools/list stores facts of a project, and finds each by other words."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.types import Tool

from tests.e2e.program import Program
from tests.patience import PATIENCE_S

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]

FACTS = {
    "Invoices are rounded half to even, because the auditors of the tax office asked for it.": (
        "how do we treat fractions of a cent on bills?"
    ),
    "The staging database is wiped every Sunday night by a cron job.": "when does the test environment lose its data?",
    "Maria owns the payment gateway; ask her before you touch its retries.": (
        "who should approve changes to checkout?"
    ),
    "We chose PostgreSQL over MongoDB for the reporting service since its queries join many tables.": (
        "why is our analytics backend relational?"
    ),
    "Passwords are hashed with argon2id, 64 MiB and three passes.": "which algorithm protects user credentials?",
    "The mobile app must work without a network for two days; changes are queued and sent later.": (
        "what are the offline requirements on phones?"
    ),
    "Deployments freeze from 20 December to 6 January.": "are releases allowed over Christmas?",
    "The flaky login test fails when two workers share one browser profile.": (
        "why does the authentication check break at random in CI?"
    ),
    "Images larger than 4 MB are shrunk by a background worker before they reach the CDN.": (
        "what happens with oversized pictures that people upload?"
    ),
    "The public API answers 429 above 100 requests a minute for each key.": "what is our rate limiting policy?",
}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]{4,}", text.lower()))


def tool_that(tools: list[Tool], does: str) -> Tool:
    """The tool whose description begins so: the agent knows no names."""
    [tool] = [tool for tool in tools if (tool.description or "").startswith(does)]
    return tool


def filled(tool: Tool, text: str) -> dict[str, Any]:
    """The arguments that the tool requires, as its schema names them: one text."""
    [name] = tool.input_schema["required"]
    assert tool.input_schema["properties"][name]["type"] == "string"
    return {name: text}


async def whole_answer(client: Client, search: Tool, question: str) -> dict[str, Any]:
    """What the search finds once it compares the vectors of all that was stored: until then an answer says how many it
    lacks."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = (await client.call_tool(search.name, filled(search, question))).structured_content
        assert answer is not None
        if "embedding_behind" not in answer:
            return answer
        assert time.monotonic() < deadline, answer["embedding_behind"]


async def test_an_agent_that_reads_only_the_list_of_tools_finds_each_of_ten_facts_by_other_words(
    tmp_path: Path,
) -> None:
    assert all(not words(fact) & words(question) - {"what", "when", "with"} for fact, question in FACTS.items())
    program = Program(tmp_path / "home", THALWEG_EMBEDDER="minilm")
    server = StdioServerParameters(
        command=sys.executable, args=["-m", "thalweg", "mcp", "--toolsets", "context_graph"], env=program.env
    )
    try:
        async with Client(server, mode="legacy") as client:
            tools = (await client.list_tools()).tools
            store, search = tool_that(tools, "Store a memory"), tool_that(tools, "Search the knowledge graph")
            for fact in FACTS:
                assert not (await client.call_tool(store.name, filled(store, fact))).is_error
            ranks = {}
            for fact, question in FACTS.items():
                found = [row["content"] for row in (await whole_answer(client, search, question))["results"]]
                ranks[question] = found.index(fact) + 1 if fact in found else None
    finally:
        program("stop")
    assert set(ranks.values()) == {1}, ranks
