"""Streamable HTTP: stateless, its callers known by their token, its names checked."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client

from mcp_ingress.calls import Principal
from mcp_ingress.http import MAX_BODY, HttpServer
from mcp_ingress.server import build_server
from streams.errors import SettingsError
from tests.ingress.lines import INITIALIZE, WAIT_S, calling
from tests.ingress.parts import opened_door

HEADERS = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}


@asynccontextmanager
async def serving(home: Path, **settings: Any) -> AsyncIterator[HttpServer]:
    async with opened_door(home) as door:
        server = HttpServer(build_server(door, "0"), Principal("http", "remote"), door.limits, **settings)
        await server.start()
        try:
            yield server
        finally:
            await server.stop()


@asynccontextmanager
async def requests(home: Path, **settings: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with serving(home, **settings) as server:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{server.port}", headers=HEADERS, timeout=WAIT_S) as client:
            yield client


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_client_calls_and_its_namespace_is_its_credentials(tmp_path: Path, mode: Any) -> None:
    async with serving(tmp_path) as server:
        async with Client(f"http://127.0.0.1:{server.port}/mcp", mode=mode) as client:
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


async def test_further_names_of_the_host_are_accepted_and_no_others(tmp_path: Path) -> None:
    async with requests(tmp_path, allowed_hosts=["thalweg.example"]) as client:
        assert (await client.post("/mcp", json=INITIALIZE, headers={"host": "thalweg.example:7733"})).status_code == 200
        assert (await client.post("/mcp", json=INITIALIZE, headers={"host": "evil.example"})).status_code == 421


async def test_health_needs_no_token_and_everything_else_does(tmp_path: Path) -> None:
    async with requests(tmp_path, token="right") as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "right"}, {"authorization": "Bearer right2"}):
            refused = await client.post("/mcp", json=INITIALIZE, headers=headers)
            assert refused.status_code == 401 and refused.headers["www-authenticate"] == "Bearer"
        assert (await client.post("/mcp", json=INITIALIZE, headers={"authorization": "Bearer right"})).status_code == 200


async def test_beyond_loopback_a_token_is_needed(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="needs a bearer token"):
        async with serving(tmp_path, host="0.0.0.0"):
            pass


@pytest.mark.parametrize("settings", [{}, {"host": "0.0.0.0", "token": "right"}])
async def test_a_foreign_host_or_origin_is_refused_wherever_it_is_bound(tmp_path: Path, settings: dict[str, Any]) -> None:
    token = {"authorization": "Bearer right"}
    async with requests(tmp_path, **settings) as client:
        assert (await client.post("/mcp", json=INITIALIZE, headers={**token, "host": "evil.example"})).status_code == 421
        assert (await client.post("/mcp", json=INITIALIZE, headers={**token, "origin": "http://evil.example"})).status_code == 403
        assert (await client.post("/mcp", json=INITIALIZE, headers=token)).status_code == 200


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
