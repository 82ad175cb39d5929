"""Streamable HTTP: stateless, its callers known by their token, its names checked."""

from __future__ import annotations

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from mcp_ingress.credentials import Credentials
from mcp_ingress.http import MAX_BODY, Endpoint, HttpServer, _hosts
from mcp_ingress.server import CLIENT_INFO_META, build_server
from streams.errors import SettingsError
from streams.topics import TELEMETRY
from tests.ingress.lines import INITIALIZE, WAIT_S, calling
from tests.ingress.parts import events_on, opened_door

HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
TOKEN = "right"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@asynccontextmanager
async def serving(home: Path, **settings: Any) -> AsyncIterator[HttpServer]:
    async with opened_door(home) as door:
        server = HttpServer(
            build_server(door, "0"), door, Credentials.of_one(TOKEN, "remote", "in a drawer"), Endpoint(**settings)
        )
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@asynccontextmanager
async def requests(home: Path, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(home, **settings) as server:
        async with httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{server.port}", headers=HEADERS | BEARER, timeout=WAIT_S
        ) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_calls_and_its_namespace_is_its_credentials(tmp_path: Path, mode: Any) -> None:
    async with serving(tmp_path) as server:
        transport = streamable_http_client(
            f"http://127.0.0.1:{server.port}/mcp", http_client=create_mcp_http_client(headers=BEARER)
        )
        async with Client(transport, mode=mode) as client:
            assert (await client.list_tools()).tools
            result = await client.call_tool("echo", {"text": "hi"})
    assert result.structured_content is not None and result.structured_content["namespace"] == "remote"


async def test_requests_have_no_connection_and_see_what_their_credential_wrote(tmp_path: Path) -> None:
    async with requests(tmp_path) as client:
        before = await client.post("/mcp", json=calling(1, "asked"))
        written = await client.post("/mcp", json=calling(2, "write_note", content="a"))
        after = await client.post("/mcp", json=calling(3, "asked"))
    asked = [answer.json()["result"]["structuredContent"]["asked"] for answer in (before, after)]
    assert asked == [{}, written.json()["result"]["structuredContent"]["freshness"]]


async def test_requests_of_one_client_are_one_connection_for_what_is_remembered(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as door:
        for name in ("right", "other", "right"):  # a node of its own each time, as after a restart
            server = HttpServer(build_server(door, "0"), door, Credentials.of_one(TOKEN, name), Endpoint())
            await server.start()
            for said in ("cursor", "claude"):
                async with httpx.AsyncClient(headers=HEADERS | BEARER, timeout=WAIT_S) as client:
                    meta = {CLIENT_INFO_META: {"name": said, "version": "1"}}
                    body = calling(1, "write_note", meta, content="a")
                    for _ in range(2):
                        answer = await client.post(f"http://127.0.0.1:{server.port}/mcp", json=body)
                        assert answer.json()["result"]["structuredContent"]["success"]
            await server.stop()
        notes = await events_on(door.services.log, TELEMETRY.name)
    connections = [note.connection for note in notes]
    assert len(connections) == 12 and all(connections)
    assert sorted(Counter(connections).values()) == [2, 2, 4, 4]


async def test_health_needs_no_token_and_everything_else_does_and_says_where_it_is(tmp_path: Path) -> None:
    async with requests(tmp_path) as client:
        assert (await client.get("/healthz", headers={"authorization": ""})).json() == {"status": "ok"}
        for wrong in ("", "Bearer wrong", TOKEN, "Bearer right2", "Bearer righ", "Bearer", "bearer \xe9"):
            refused = await client.post("/mcp", json=INITIALIZE, headers={"authorization": wrong.encode("latin-1")})
            challenge = refused.headers["www-authenticate"]
            assert refused.status_code == 401 and challenge.startswith("Bearer ")
            assert ('error="invalid_token"' in challenge) is bool(wrong)
            assert (
                refused.json()["message"]
                == "A bearer token is needed, `Authorization: Bearer <token>`: it is in a drawer."
            )
        assert (await client.post("/mcp", json=INITIALIZE)).status_code == 200


@pytest.mark.parametrize("path", ["/mcp", "/healthz", "/sql", "/"])
@pytest.mark.parametrize("bound", ["127.0.0.1", "0.0.0.0"])
async def test_a_host_that_is_not_exactly_one_of_the_nodes_is_refused_on_every_path(
    tmp_path: Path, bound: str, path: str
) -> None:
    async with requests(tmp_path, host=bound) as client:
        port = client.base_url.port
        foreign = [
            "evil.example",
            f"evil.example:{port}",
            f"localhost:{port}.evil",
            "localhost:80.evil",
            f"localhost.evil:{port}",
        ]
        for host in [*foreign, "localhost", "localhost:1", f"localhost:{port}0", f"127.0.0.1:{port}@evil.example", ""]:
            refused = await client.post(path, json=INITIALIZE, headers={"host": host})
            assert refused.status_code == 421 and "`allowed_hosts`" in refused.json()["message"], host
        for host in (f"127.0.0.1:{port}", f"localhost:{port}", f"LOCALHOST:{port}", f"[::1]:{port}"):
            assert (await client.get("/healthz", headers={"host": host})).status_code == 200, host


async def test_a_request_that_names_two_hosts_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(f"GET /healthz HTTP/1.1\r\nHost: localhost:{server.port}\r\nHost: evil.example\r\n\r\n".encode())
        assert (await reader.readline()).split()[1] in (b"400", b"421")
        writer.close()


async def test_an_origin_that_is_not_exactly_the_nodes_is_refused(tmp_path: Path) -> None:
    async with requests(tmp_path) as client:
        port = client.base_url.port
        foreign = [
            "http://evil.example",
            "http://localhost",
            "http://localhost:1",
            f"http://localhost:{port}.evil",
            "null",
            f"ftp://localhost:{port}",
        ]
        for origin in foreign:
            refused = await client.post("/mcp", json=INITIALIZE, headers={"origin": origin})
            assert refused.status_code == 403 and "Origin" in refused.json()["message"], origin
        for origin in (f"http://localhost:{port}", f"http://127.0.0.1:{port}", f"http://[::1]:{port}"):
            assert (await client.post("/mcp", json=INITIALIZE, headers={"origin": origin})).status_code == 200, origin


async def test_further_names_are_accepted_with_the_nodes_port_with_none_or_with_the_one_they_name_and_no_others(
    tmp_path: Path,
) -> None:
    async with requests(tmp_path, allowed_hosts=["thalweg.example", "gate.example:8443"]) as client:
        port = client.base_url.port
        for host in ("thalweg.example", f"thalweg.example:{port}", "gate.example:8443"):
            named = {"host": host, "origin": f"https://{host}"}
            assert (await client.post("/mcp", json=INITIALIZE, headers=named)).status_code == 200, host
        for host in (
            "thalweg.example:1",
            "gate.example",
            f"gate.example:{port}",
            "gate.example:8443.evil",
            "evil.thalweg.example",
        ):
            assert (await client.post("/mcp", json=INITIALIZE, headers={"host": host})).status_code == 421, host


def test_the_port_that_a_host_leaves_out_is_80() -> None:
    assert {"localhost", "localhost:80", "127.0.0.1", "[::1]"} <= _hosts("127.0.0.1", 80, [])
    assert "localhost" not in _hosts("127.0.0.1", 7733, [])


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with requests(tmp_path) as client:
        refused = await client.post("/mcp", content=b" " * (MAX_BODY + 1), headers={"content-type": "application/json"})
        assert refused.status_code == 413


async def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(SettingsError, match=f"HTTP cannot listen on 127.0.0.1:{port}: Address already in use"):
            async with serving(tmp_path, port=port):
                pass
