"""The node's sockets: MCP in lines for agents on one, one JSON answer a line for the command line on the other."""

from __future__ import annotations

import asyncio
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from mcp_ingress.server import build_server
from mcp_ingress.socket import SocketServer
from streams.clock import SystemClock
from streams.errors import StoreError
from tests.ingress.lines import INITIALIZE, WAIT_S, Lines, calling
from tests.ingress.parts import opened_door
from thalweg.control.server import ControlServer


@asynccontextmanager
async def listening(home: Path) -> AsyncIterator[SocketServer]:
    async with opened_door(home) as door:
        server = SocketServer(home / "node.sock", build_server(door, "0"), SystemClock(), door)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[SocketServer]:
    async with listening(tmp_path) as server:
        yield server


async def test_only_the_user_may_open_the_socket(server: SocketServer) -> None:
    assert stat.S_IMODE(server.path.stat().st_mode) == 0o600


async def test_a_client_greets_and_calls(server: SocketServer) -> None:
    peer = await Lines.to_socket(server.path)
    assert (await peer.greet())["result"]["serverInfo"]["name"] == "thalweg"
    assert (await peer.result(calling(1, "echo", text="hi")))["arguments"]["text"] == "hi"


async def test_a_line_that_is_not_json_is_answered_and_the_connection_lives_on(server: SocketServer) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.send(b"{nonsense\n")
    answer = await peer.receive()
    assert answer["error"]["code"] == -32700 and answer["id"] is None
    await peer.greet()
    await peer.send(b'"\xff"\n', b'{"jsonrpc":"2.0","id":7,"method":5}\n', b"[]\n", b"\n")
    assert (await peer.receive())["error"]["code"] == -32700
    invalid = await peer.receive()
    assert (invalid["error"]["code"], invalid["id"]) == (-32600, 7)
    assert (await peer.receive())["error"]["code"] == -32600
    assert (await peer.result(calling(1, "echo")))["success"]


@pytest.mark.parametrize("bad", [b'"a\\ud800b"', b'"a\\u0000b"', b"NaN", b"1e999", b"18446744073709551616"])
async def test_values_that_storage_must_not_see_are_refused_at_the_door(server: SocketServer, bad: bytes) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.greet()
    line = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":' + bad + b"}}}\n"
    )
    await peer.send(line)
    answer = await peer.receive()
    assert "error" in answer or answer["result"]["isError"]
    assert (await peer.result(calling(2, "echo")))["success"]


@pytest.mark.parametrize(
    ("params", "named"),
    [({"name": "echo", "arguments": ["hi"]}, "arguments"), ({"arguments": {}}, "name"), ({"name": 5}, "name")],
)
async def test_a_malformed_call_is_refused_with_what_is_malformed(
    server: SocketServer, params: dict[str, Any], named: str
) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.greet()
    error = (await peer.ask({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}))["error"]
    assert error["code"] == -32602 and "tools/call" in error["message"] and f"{named}:" in error["message"]


async def test_deep_nesting_is_answered(server: SocketServer) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.greet()
    await peer.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + b"[" * 5000 + b"]" * 5000 + b"}\n")
    assert "error" in await peer.receive()


async def test_a_message_that_is_too_long_is_answered_before_the_connection_ends(server: SocketServer) -> None:
    peer = await Lines.to_socket(server.path)
    sending = asyncio.create_task(peer.send(b"x" * (17 * 1024 * 1024) + b"\n"))
    answer = await peer.receive()
    assert answer["error"]["code"] == -32700 and "longer than" in answer["error"]["message"]
    sending.cancel()


async def test_calls_run_side_by_side_and_a_slow_one_holds_up_none(server: SocketServer) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.greet()
    await peer.send(calling("slow", "patient", seconds=50), calling("fast", "echo"))
    assert (await peer.receive())["id"] == "fast"


async def test_after_the_peers_last_line_what_it_asked_is_still_answered(
    server: SocketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_ingress.socket.LAST_ANSWERS_S", WAIT_S)
    peer = await Lines.to_socket(server.path)
    await peer.greet()
    await peer.send(calling(1, "patient", seconds=0.3))
    peer.writer.write_eof()
    assert (await peer.receive())["result"]["structuredContent"]["success"]
    assert await peer.ended()


@pytest.mark.parametrize("line", [{"thalweg": "control", "command": "stop"}, {"command": "stop"}])
async def test_the_agents_socket_takes_no_control_request_first_or_later(
    server: SocketServer, line: dict[str, Any]
) -> None:
    peer = await Lines.to_socket(server.path)
    await peer.send(line)
    first = (await peer.receive())["error"]
    assert (first["code"], first["message"]) == (-32600, "Invalid request: a line is one JSON-RPC 2.0 message.")
    await peer.greet()
    await peer.send(line)
    assert (await peer.receive())["error"] == first


@pytest.fixture
async def control(tmp_path: Path) -> AsyncIterator[ControlServer]:
    async def on_request(request: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True, "heard": request["command"]}

    server = ControlServer(tmp_path / "control.sock", on_request)
    await server.start()
    yield server
    await server.stop()


async def test_only_the_user_may_open_the_control_socket(control: ControlServer) -> None:
    assert stat.S_IMODE(control.path.stat().st_mode) == 0o600


async def test_control_requests_are_answered_line_by_line_and_what_is_none_is_refused(control: ControlServer) -> None:
    peer = await Lines.to_socket(control.path)
    await peer.send({"command": "status"})
    assert await peer.receive() == {"ok": True, "heard": "status"}
    for line in (INITIALIZE, b"{nonsense\n", b"[]\n"):
        await peer.send(line)
        answer = await peer.receive()
        assert not answer["ok"] and answer["error"].startswith("A control request is a JSON object with a `command`")
    await peer.send({"command": "stop"})
    assert (await peer.receive())["heard"] == "stop"


async def test_a_socket_that_listens_keeps_a_question_until_it_is_served(tmp_path: Path) -> None:
    async def on_request(request: dict[str, Any]) -> dict[str, Any]:
        return {"ok": True}

    server = ControlServer(tmp_path / "control.sock", on_request)
    server.listen()
    peer = await Lines.to_socket(server.path)
    await peer.send({"command": "status"})
    await server.start()
    assert await peer.receive() == {"ok": True}
    await server.stop()


async def test_the_server_knows_how_many_clients_there_are_and_since_when_none(server: SocketServer) -> None:
    before = server.idle_since
    assert before is not None
    peer = await Lines.to_socket(server.path)
    await peer.greet()
    assert (server.clients, server.idle_since) == (1, None)
    peer.writer.close()
    async with asyncio.timeout(WAIT_S):
        while server.clients:
            await asyncio.sleep(0.01)
    assert server.idle_since is not None and server.idle_since > before


async def test_a_dead_nodes_socket_is_replaced_and_a_live_ones_is_not(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(tmp_path / "node.sock"))
    async with listening(tmp_path) as server:
        with pytest.raises(StoreError, match="Another node answers"):
            async with listening(tmp_path):
                pass
        peer = await Lines.to_socket(server.path)
        assert "result" in await peer.greet()
    assert not server.path.exists()


async def test_stopping_ends_the_connections(tmp_path: Path) -> None:
    async with listening(tmp_path) as server:
        peer = await Lines.to_socket(server.path)
        await peer.greet()
    assert await peer.ended()
