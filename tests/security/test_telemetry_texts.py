"""What our own tools put on the telemetry topic are ids, counts and enums.

No word of an agent is there, or in its mirror.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.door import Request, Visitor
from mcp_ingress.inventory import find_tools
from streams.codec import decode
from streams.event_types.talos import CATEGORIES
from streams.event_types.telemetry import TALOS_EVENTS
from streams.log.sqlite import SqliteLog
from streams.positions import Partition
from streams.topics import TELEMETRY
from tests.patience import SOON_S
from thalweg.process.node import Node
from thalweg.settings import Settings

WORD = "quokka"
OF_OTHERS = {"session.state_change", "gen_ai.request", "gen_ai.response"}
"""What only an agent's own program emits."""


@pytest.fixture
async def node(tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(Settings(home=tmp_path / "home", embedder="hashing", partitions=1, rate_limit=1e6))
    await node.start()
    yield node
    await node.stop()


def texts_for(schema: Mapping[str, Any], name: str = "") -> Any:
    """A value that has every property of the schema; each text that is free holds `WORD`."""
    kind = schema.get("type")
    match kind if isinstance(kind, str) else (kind or ["string"])[0]:
        case "object":
            return {key: texts_for(part, key) for key, part in schema.get("properties", {}).items()}
        case "array":
            return [texts_for(schema["items"], name)] if "items" in schema else []
        case "integer":
            return int(max(schema.get("minimum", 1), 1))
        case "number":
            return schema.get("maximum", 0.5)
        case "boolean":
            return True
        case _:
            return schema["enum"][0] if "enum" in schema else f"The {WORD} of {name or 'all'}"


async def call(node: Node, visitor: Visitor, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return (await node.running.door.call(visitor, Request(tool, arguments))).body


async def one_session(node: Node, name: str) -> None:
    """Every tool once, with a word of its own in all its texts, within a session of Talos."""
    session_id, visitor = f"2026-01-05-{name}", Visitor(node.running.door.local)
    for tool in sorted(find_tools(), key=lambda tool: (tool.name == "session_close", tool.name != "session_open")):
        arguments = texts_for(tool.input_schema)
        if tool.toolset == "talos" and "session_id" in arguments:
            arguments["session_id"] = session_id
        for category in CATEGORIES if tool.name == "journal_write" else [None]:
            answer = await call(node, visitor, tool.name, arguments | ({"category": category} if category else {}))
            assert tool.toolset != "talos" or tool.kind == "read" or answer["success"], answer


async def telemetry_of(node: Node) -> tuple[set[str], str]:
    """The types of the events on the topic, and all that the topic holds as text: keys, headers and values."""
    await node.running.door.publisher.flush(SOON_S)
    log = node.log
    assert isinstance(log, SqliteLog)
    records = log.fetch(Partition(TELEMETRY.name, 0), 0, 10_000)
    kinds = {
        logged.event.type.removeprefix("thalweg.").removesuffix(".v1")
        for record in records
        for logged in decode(record)
    }
    return kinds, "\n".join(f"{record.key!r} {record.headers} {(record.value or b'').decode()}" for record in records)


@pytest.mark.process
async def test_no_text_of_an_agent_is_on_the_telemetry_topic_or_in_its_mirror(node: Node, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):  # three sessions with one friction make a pattern
        await one_session(node, name)
    wanted = set(TALOS_EVENTS) - OF_OTHERS
    async with asyncio.timeout(SOON_S):
        while "knowledge.pattern_detected" not in (await telemetry_of(node))[0]:
            await asyncio.sleep(0.05)
    kinds, said = await telemetry_of(node)
    assert wanted == kinds, "an event type that no tool emits, or that this test does not know"
    assert WORD not in said.lower()
    mirror = tmp_path / "home" / "telemetry" / "events.jsonl"
    async with asyncio.timeout(SOON_S):
        while "knowledge.pattern_detected" not in mirror.read_text():
            await asyncio.sleep(0.05)
    assert WORD not in mirror.read_text().lower()


async def test_the_goal_is_shown_with_the_session_though_telemetry_names_it_by_id(node: Node) -> None:
    await call(
        node,
        Visitor(node.running.door.local),
        "session_open",
        {"session_id": "2026-01-05-a", "goal": f"Find the {WORD}"},
    )
    assert await node.running.has_reached("now")
    rows = await node.running.store.reader.run(lambda cursor: cursor.execute("SELECT goal FROM sessions").fetchall())
    assert rows == [(f"Find the {WORD}",)]
    kept = await node.running.store.reader.run(
        lambda cursor: cursor.execute("SELECT goal FROM telemetry_sessions").fetchall()
    )
    assert kept == [(None,)]
