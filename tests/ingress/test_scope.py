"""Each connection sees its own namespace and tools, and what it may not see is refused in a sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.inventory import Inventory
from mcp_ingress.server import build_server
from mcp_ingress.socket import SocketServer
from mcp_ingress.toolset import Toolset
from streams.clock import SystemClock
from tests.ingress.lines import INITIALIZE, Lines, calling
from tests.ingress.parts import opened_door
from tests.ingress.tools import demo_tools

LIST: dict[str, Any] = {"jsonrpc": "2.0", "id": "list", "method": "tools/list"}


def two_toolsets() -> Inventory:
    """The demonstration tools, of which those that write are a toolset of their own."""
    found = demo_tools()
    tools = [tool if tool.kind == "read" else replace(tool, toolset="notes") for tool in found]
    others = [each for each in found.toolsets.values() if each.name != "notes"]
    return Inventory.of(tools, [*others, Toolset("notes", purpose="Notes are kept here")])


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[SocketServer]:
    async with opened_door(tmp_path, two_toolsets(), namespace="home") as door:
        server = SocketServer(tmp_path / "node.sock", build_server(door, "0"), SystemClock(), door)
        await server.start()
        yield server
        await server.stop()


def asking(**scope: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": "scope", "method": "thalweg/scope", "params": scope}


async def scoped(server: SocketServer, **scope: Any) -> tuple[Lines, dict[str, Any]]:
    """A client with this scope, and what `initialize` answered."""
    peer = await Lines.to_socket(server.path)
    assert "result" in await peer.ask(asking(**scope))
    return peer, (await peer.greet())["result"]


async def names_of(peer: Lines) -> set[str]:
    return {tool["name"] for tool in (await peer.ask(LIST))["result"]["tools"]}


async def test_each_connection_calls_in_its_own_namespace(server: SocketServer) -> None:
    south, _ = await scoped(server, namespace="south")
    north, _ = await scoped(server, namespace="north")
    plain = await Lines.to_socket(server.path)
    await plain.greet()
    said = [(await peer.result(calling(1, "echo")))["namespace"] for peer in (south, north, plain, south)]
    assert said == ["south", "north", "home", "south"]


async def test_each_connection_is_listed_and_told_of_its_own_tools_only(server: SocketServer) -> None:
    notes, of_notes = await scoped(server, toolsets=["notes"])
    everything, of_all = await scoped(server, namespace="north")
    all_tools, own = await names_of(everything), await names_of(notes)
    assert own and own < all_tools and "write_note" in own and "echo" not in own
    assert "Notes are kept here." in of_notes["instructions"] and "Notes are kept here." in of_all["instructions"]
    _, without = await scoped(server, toolsets="demo")
    assert "Notes are kept here." not in without["instructions"]
    assert await names_of(notes) == own, "the list of another connection is not given from the cache"


async def test_a_tool_that_a_connection_is_not_served_is_refused_with_what_it_is_served(server: SocketServer) -> None:
    notes, _ = await scoped(server, toolsets=["notes"])
    error = (await notes.ask(calling(1, "echo")))["error"]
    assert error["code"] == -32602
    assert error["message"] == ("The tool 'echo' is of the toolset demo, and this connection is served notes only.")
    error = (await notes.ask(calling(2, "ecko")))["error"]
    assert "echo" not in error["message"], "what is not served is no suggestion"


@pytest.mark.parametrize("said", [True, "true", "1"])
async def test_a_connection_that_only_reads_is_listed_no_write_and_refused_one(server: SocketServer, said: Any) -> None:
    reader, _ = await scoped(server, read_only=said)
    assert {"echo"} <= await names_of(reader) and "write_note" not in await names_of(reader)
    error = (await reader.ask(calling(1, "write_note", content="a")))["error"]
    assert (error["code"], error["message"]) == (
        -32602,
        "The tool 'write_note' writes, and this connection only reads.",
    )


@pytest.mark.parametrize(
    ("scope", "sentence"),
    [
        ({"namespace": "a/b"}, "The namespace is 'a/b'; accepted: 1 to 128 printable characters without a slash"),
        ({"namespace": "n" * 300}, "The namespace has 300 characters"),
        ({"namespace": ""}, "The namespace has 0 characters"),
        ({"namespace": "a\u0000b"}, "printable characters"),
        ({"namespace": 5}, "`namespace` of a scope is a text"),
        ({"toolsets": ["demo", "talos"]}, "There is no toolset 'talos'; choose from demo, notes"),
        ({"toolsets": {"demo": 1}}, "`toolsets` of a scope are a list of names"),
        ({"read_only": "perhaps"}, "`read_only` of a scope is 'perhaps'; accepted: true, false"),
        ({"toolset": "demo"}, "A scope has no field 'toolset'; accepted: namespace, toolsets, read_only"),
    ],
)
async def test_what_the_node_cannot_give_is_refused_in_a_sentence_and_nothing_is_served(
    server: SocketServer, scope: dict[str, Any], sentence: str
) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.send(asking(**scope), INITIALIZE)
    answer = await peer.receive()
    assert (answer["id"], answer["error"]["code"]) == ("scope", -32602) and sentence in answer["error"]["message"]
    assert await peer.ended()


async def test_a_toolset_that_the_node_was_started_without_is_refused_by_that(tmp_path: Path) -> None:
    async with opened_door(tmp_path, two_toolsets().select(["demo"])) as door:
        server = SocketServer(tmp_path / "node.sock", build_server(door, "0"), SystemClock(), door)
        await server.start()
        error = (await (await Lines.to_socket(server.path)).ask(asking(toolsets=["notes"])))["error"]
        await server.stop()
    assert error["message"] == (
        "This node does not serve the toolset 'notes' (its setting `toolsets`); choose from demo."
    )


async def test_a_scope_in_the_middle_of_a_connection_is_refused_and_the_first_one_holds(server: SocketServer) -> None:
    peer, _ = await scoped(server, namespace="south")
    refused = await peer.ask(asking(namespace="north"))
    assert refused["error"]["code"] == -32600 and "named once" in refused["error"]["message"]
    await peer.send({"jsonrpc": "2.0", "method": "thalweg/scope", "params": {"namespace": "north"}})
    assert "named once" in (await peer.receive())["error"]["message"], "a notification has no silent effect either"
    assert (await peer.result(calling(1, "echo")))["namespace"] == "south"


async def test_a_first_line_that_only_mentions_a_scope_is_a_message_like_any_other(server: SocketServer) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.send(b'{"thalweg/scope": nonsense\n')
    assert (await peer.receive())["error"]["code"] == -32700
    await peer.greet()
    assert (await peer.result(calling(1, "echo", text="thalweg/scope")))["namespace"] == "home"
