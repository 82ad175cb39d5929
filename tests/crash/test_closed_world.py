"""I10: what a tool returns are live rows of the caller's own namespace, also when others have said the same words."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.calls import Principal, Request, Visitor
from mcp_ingress.inventory import find_tools
from mcp_ingress.tool import Tool
from streams.positions import Freshness
from thalweg.node import Node
from thalweg.settings import Settings

NORTH, SOUTH = (Visitor(Principal(name, name)) for name in ("north", "south"))
WORDS = "gearbox whines in winter"
SEARCHES: list[tuple[str, dict[str, Any]]] = [
    ("journal_query", {"query": WORDS}),
    ("belief_query", {"query": WORDS}),
    ("entity_search", {"query": "gearbox"}),
    ("tension_list", {}),
    ("hybrid_search", {"query_text": WORDS}),
    ("pattern_list", {}),
    ("session_list", {}),
]


@pytest.fixture
async def node(broker_url: str | None, tmp_path: Path) -> AsyncIterator[Node]:
    node = Node(Settings(home=tmp_path / "home", broker=broker_url or "", embedder="hashing", partitions=4))
    await node.start()
    yield node
    await node.stop()


async def call(node: Node, visitor: Visitor, tool: str, **arguments: Any) -> dict[str, Any]:
    return (await node.door.call(visitor, Request(tool, arguments))).body


async def fill(node: Node, visitor: Visitor) -> str:
    """The same words for each namespace, a belief that is superseded among them; its id."""
    for number in range(3):
        await call(node, visitor, "journal_write", content=f"I realized that the {WORDS}, time {number}.", category="insight")
    entities = [{"name": "gearbox", "type": "concept", "role": "subject"}]
    first = await call(node, visitor, "belief_create", content=f"The {WORDS}.", entities=entities)
    assert "belief" in first, first
    old = str(first["belief"]["id"])
    second = await call(node, visitor, "belief_supersede", old_belief_id=old, new_content=f"The {WORDS} only when cold.", reason="measured")
    assert second.get("success", True) and "error_code" not in second, second
    ends = Freshness(await node.log.end_offsets(["thalweg.memory.v1"]))
    assert await node.applied.wait(ends, timeout_s=60, stages=("extract", "embed"))
    return old


def strings(value: Any) -> Iterator[str]:
    """Every text in an answer."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings(inner)


async def ids_of(node: Node, namespace: str) -> set[str]:
    """Every id in the rows of a namespace."""

    def query(cursor: Any) -> set[str]:
        columns = cursor.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE column_name LIKE '%\\_id' ESCAPE '\\' AND table_name IN "
            "(SELECT table_name FROM duckdb_columns() WHERE column_name = 'namespace') AND schema_name = 'main'"
        ).fetchall()
        found: set[str] = set()
        for table, column in columns:
            rows = cursor.execute(f'SELECT DISTINCT "{column}"::VARCHAR FROM "{table}" WHERE namespace = ?', [namespace]).fetchall()
            found |= {value for (value,) in rows if value}
        return found

    return await node.reader.run(query)


@pytest.mark.process
@pytest.mark.timeout(300)
async def test_no_search_returns_an_id_of_another_namespace_or_of_a_row_that_is_not_live(node: Node) -> None:
    superseded = {visitor.principal.namespace: await fill(node, visitor) for visitor in (NORTH, SOUTH)}
    ids = {name: await ids_of(node, name) for name in ("north", "south")}
    for visitor, other in ((NORTH, "south"), (SOUTH, "north")):
        own = visitor.principal.namespace
        foreign = ids[other] - ids[own]
        assert len(foreign) > 10
        seen = 0
        for tool, arguments in SEARCHES:
            answer = await call(node, visitor, tool, **arguments)
            said = set(strings(answer))
            assert "error_code" not in answer, (tool, answer)
            assert not said & foreign, f"{tool} tells {own} of {said & foreign}"
            assert superseded[own] not in {str(found.get("id")) for found in answer.get("beliefs", [])}, f"{tool} returns what is not live"
            seen += len(said & ids[own])
        assert seen >= 5, "the searches found nothing to compare"


def asking(tool: Tool, foreign_id: str) -> dict[str, Any]:
    """Everything that the tool can be asked: words that both have said, and an id of the other wherever it takes one."""
    asked: dict[str, Any] = {}
    for name, schema in tool.input_schema.get("properties", {}).items():
        if "id" in name.split("_"):
            asked[name] = foreign_id
        elif name in tool.input_schema.get("required", ()) and "enum" not in schema:
            asked[name] = WORDS if schema.get("type") == "string" else 1
    return asked


@pytest.mark.process
@pytest.mark.timeout(300)
async def test_no_tool_that_reads_tells_of_another_namespace_whatever_id_it_is_given(node: Node) -> None:
    for visitor in (NORTH, SOUTH):
        await fill(node, visitor)
    foreign = await ids_of(node, "north") - await ids_of(node, "south")
    given = (await call(node, NORTH, "belief_query", query=WORDS))["beliefs"][0]["id"]
    answered = []
    for tool in find_tools():
        if tool.kind == "read":
            answer = await call(node, SOUTH, tool.name, **asking(tool, given))
            told = set(strings(answer)) & (foreign - {given})
            assert not told, f"{tool.name} tells of {told}"
            assert not any("north" in said for said in strings(answer)), tool.name
            answered.append("error_code" not in answer)
    assert len(answered) > 15 and sum(answered) > 5, "most tools were not asked what they answer"


@pytest.mark.process
@pytest.mark.timeout(300)
async def test_an_id_of_another_namespace_is_unknown_to_the_tools_that_take_one(node: Node) -> None:
    await fill(node, NORTH)
    theirs = (await call(node, NORTH, "belief_query", query=WORDS))["beliefs"][0]["id"]
    for tool, arguments in [
        ("belief_get", {"belief_id": theirs}),
        ("belief_supersede", {"old_belief_id": theirs, "new_content": "Taken over.", "reason": "mine now"}),
    ]:
        answer = await call(node, SOUTH, tool, **arguments)
        assert answer.get("success") is False or "error" in answer, (tool, answer)
        assert WORDS not in " ".join(strings(answer))
