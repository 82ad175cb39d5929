"""Degraded mode of all eight tools: with the log away, and with the store away, through the real door.

The session goes on.
"""

from __future__ import annotations

from typing import Any

import pytest

from mcp_ingress.door import Door, Request, Visitor
from mcp_ingress.inventory import find_tools
from tests.talos.node import SmallNode

SESSION = "2026-01-05-away"
WRITES: dict[str, dict[str, Any]] = {
    "session_open": {"session_id": f"{SESSION}-2", "goal": "Go on"},
    "journal_write": {"content": "Caches lie.", "category": "insight", "session_id": SESSION},
    "friction_log": {"description": "Slow", "category": "tooling", "session_id": SESSION},
    "reflect": {"content": "I realized I wait.", "session_id": SESSION},
    "session_close": {"session_id": SESSION},
}
READS: dict[str, dict[str, Any]] = {
    "journal_query": {"query": "caches"},
    "graph_query": {"cypher": "MATCH (s:Session) RETURN count(s)"},
    "pattern_check": {"session_id": SESSION},
}
IDS = {
    "session_open": "session_id",
    "journal_write": "entry_id",
    "friction_log": "friction_id",
    "reflect": "reflection_id",
}


@pytest.fixture
async def door(node: SmallNode) -> Door:
    await node.call("session_open", session_id=SESSION, goal="Look")
    return Door(node.services, find_tools())


async def answer(door: Door, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return (await door.call(Visitor(door.local), Request(tool, arguments))).body


def test_these_are_the_eight() -> None:
    assert {*WRITES, *READS} == {tool.name for tool in find_tools().tools.values() if tool.toolset == "talos"}


@pytest.mark.process
async def test_with_the_log_away_each_write_is_spooled_and_answers_its_ids_and_each_read_answers(
    node: SmallNode, door: Door
) -> None:
    node.is_down = True
    for tool, arguments in READS.items():
        found = await answer(door, tool, arguments)
        assert found["success"] is True, (tool, found)
    for tool, arguments in WRITES.items():
        said = await answer(door, tool, arguments)
        assert (said["success"], said["degraded"], said["spooled"]) == (False, True, True), (tool, said)
        assert said["message"] and said[IDS.get(tool, "session_id")] and said["freshness"] == {}
    node.is_down = False
    assert await node.spool.drain(node.services.log) > 0
    for tool, arguments in READS.items():
        assert (await answer(door, tool, arguments))["success"] is True
    assert node.store.sql("SELECT session_id, status FROM talos_sessions ORDER BY 1") == [
        (SESSION, "closed"),
        (f"{SESSION}-2", "open"),
    ]
    labels = {label for (label,) in node.store.sql("SELECT DISTINCT label FROM entities")}
    assert labels == {"Insight", "Friction", "Reflection"}
    names = {
        event.type.split(".")[2]
        for event in node.published
        if event.type.split(".")[1] in ("session", "knowledge", "reflection")
    }
    assert {"start", "end", "insight", "friction", "triggered"} <= names


async def test_with_the_store_away_each_write_is_on_the_log_and_each_read_says_degraded(
    node: SmallNode, door: Door
) -> None:
    node.reader.is_down = True
    before = len(node.published)
    for tool, arguments in READS.items():
        found = await answer(door, tool, arguments)
        assert (found["success"], found["degraded"]) == (False, True) and found["message"], (tool, found)
    for tool, arguments in WRITES.items():
        said = await answer(door, tool, arguments)
        # a write that needs nothing of the store has done all that it does: a new friction is like no other
        assert said["success"] is (tool in ("journal_write", "reflect", "friction_log")), (tool, said)
        assert (
            said.get("degraded", False) is not said["success"]
            and said["freshness"]
            and said[IDS.get(tool, "session_id")]
        )
    assert len(node.published) >= before + 2 * len(WRITES)
