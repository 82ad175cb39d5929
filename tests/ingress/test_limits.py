"""Rate limits: a flood of one client leaves the others' calls accepted and quick, and unused shares are lent."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from mcp_ingress.credentials import Credentials
from mcp_ingress.http import Endpoint, HttpServer
from mcp_ingress.limits import BURST_S, BYTES_A_CALL, CREDENTIAL, NODE, RateLimits
from mcp_ingress.server import build_server
from mcp_ingress.socket import MAX_UNANSWERED, SocketServer
from streams.clock import SystemClock
from streams.errors import Refused
from tests.ingress.lines import WAIT_S, Lines, calling
from tests.ingress.parts import opened_door
from tests.ingress.test_door import SetClock
from tests.ingress.test_http import BEARER, HEADERS, TOKEN

RATE = 10.0
BURST = int(RATE * BURST_S)


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def limits(clock: SetClock) -> RateLimits:
    return RateLimits(clock, RATE)


def taken(limits: RateLimits, credential: str, connection: str, tries: int) -> int:
    """How many of this many calls at once are accepted."""
    return sum(not limits.take_or_wait(credential, connection) for _ in range(tries))


def test_a_connection_has_its_burst_then_its_rate(limits: RateLimits, clock: SetClock) -> None:
    assert taken(limits, "local", "a", 100) == BURST
    clock.seconds += 0.5
    assert taken(limits, "local", "a", 100) == RATE / 2
    with pytest.raises(Refused) as refused:
        limits.take("local", "a")
    assert refused.value.error_code == "rate_limited" and refused.value.extra["retry_after_ms"] == 100


def test_the_node_is_shared_while_two_connections_call(limits: RateLimits, clock: SetClock) -> None:
    limits.take("local", "a")
    assert not limits.is_shared()
    limits.take("token", "b")
    assert limits.is_shared()
    clock.seconds += BURST_S
    limits.take("local", "a")
    assert limits.is_shared()
    clock.seconds += 0.1
    assert not limits.is_shared()


def test_a_flood_of_one_connection_takes_nothing_from_another(limits: RateLimits, clock: SetClock) -> None:
    for _ in range(50):
        clock.seconds += 0.2
        taken(limits, "local", "flood", 100)
        assert taken(limits, "local", "calm", 1) == 1


def test_many_floods_of_one_credential_leave_its_calm_connection_its_share(limits: RateLimits, clock: SetClock) -> None:
    floods = [f"flood {number}" for number in range(9)]
    accepted, calm = 0, 0
    for _ in range(100):  # ten connections, twenty calls a second in all: two for each
        clock.seconds += 0.5
        accepted += sum(taken(limits, "local", flood, 20) for flood in floods)
        calm += taken(limits, "local", "calm", 1)
    assert calm == 100
    assert accepted + calm <= CREDENTIAL * RATE * (50 + 2 * BURST_S)


def test_what_others_leave_unused_is_lent(limits: RateLimits, clock: SetClock) -> None:
    for name in ("idle a", "idle b", "idle c"):
        limits.take("local", name)
    accepted = 0
    for _ in range(20):
        clock.seconds += 0.5
        accepted += taken(limits, "local", "busy", 20)
    assert accepted >= 0.95 * RATE * 10


def test_floods_of_one_credential_leave_another_credential_its_share_of_the_node(
    limits: RateLimits, clock: SetClock
) -> None:
    accepted = {"http": 0, "local": 0, "sql": 0}
    for _ in range(100):
        clock.seconds += 0.1
        for credential in ("http", "http", "http", "local", "sql"):
            for connection in range(4):
                accepted[credential] += taken(limits, credential, str(connection), 5)
    assert sum(accepted.values()) <= NODE * RATE * (10 + 2 * BURST_S)
    assert min(accepted.values()) >= 0.9 * RATE * 10


def test_a_new_connection_is_accepted_at_once_however_many_flood(limits: RateLimits, clock: SetClock) -> None:
    for number in range(20):
        taken(limits, "local", f"flood {number}", 100)
    assert taken(limits, "local", "new", 1) == 1


def test_new_connections_without_end_do_not_get_more_than_their_credential_has(
    limits: RateLimits, clock: SetClock
) -> None:
    assert sum(taken(limits, "local", str(number), 1) for number in range(1000)) <= 2 * CREDENTIAL * BURST


def test_a_long_message_counts_as_many_calls(limits: RateLimits, clock: SetClock) -> None:
    limits.charge("local", "a", 5 * BYTES_A_CALL)
    assert taken(limits, "local", "a", 100) == BURST - 5
    limits.charge("local", "a", 10**9)
    assert limits.take_or_wait("local", "a") <= BURST_S + 1  # what is owed is bounded


def test_connections_that_are_silent_are_forgotten(limits: RateLimits, clock: SetClock) -> None:
    for number in range(100):
        limits.take_or_wait("local", str(number))
    clock.seconds += BURST_S + 1
    limits.take("local", "new")
    assert list(limits._credentials["local"].connections) == ["new"]


# --- at the transports


@asynccontextmanager
async def listening(home: Path, rate: float) -> AsyncIterator[tuple[SocketServer, HttpServer]]:
    async with opened_door(home, rate_limit=rate) as door:
        server = build_server(door, "0")
        lines = SocketServer(home / "node.sock", server, SystemClock(), door)
        http = HttpServer(build_server(door, "0"), door, Credentials.of_one(TOKEN, "remote"), Endpoint())
        await lines.start()
        await http.start()
        try:
            yield lines, http
        finally:
            await http.stop()
            await lines.stop()


@pytest.mark.parametrize("line", [b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n', b"{nonsense\n"])
async def test_a_socket_is_read_no_faster_than_the_limit_and_another_is_answered_meanwhile(
    tmp_path: Path, line: bytes
) -> None:
    async with listening(tmp_path, rate=5.0) as (server, _):
        flood, calm = await Lines.to_socket(server.path), await Lines.to_socket(server.path)
        await flood.greet()
        await calm.greet()
        flood.writer.write(line * 5000)
        async with asyncio.timeout(WAIT_S):
            for number in range(3):
                assert (await calm.result(calling(number, "echo")))["success"]
                await asyncio.sleep(0.1)
        answers = 0
        async with asyncio.timeout(WAIT_S):
            while answers < 7:
                assert await flood.reader.readline()
                answers += 1
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                while answers < 100:
                    await flood.reader.readline()
                    answers += 1


@pytest.mark.parametrize(("clients", "calls"), [(1, 45), (2, 30)])
async def test_what_clients_send_too_fast_over_the_socket_is_late_but_not_refused(
    tmp_path: Path, clients: int, calls: int
) -> None:
    async with listening(tmp_path, rate=20.0) as (server, _):
        peers = [await Lines.to_socket(server.path) for _ in range(clients)]
        for peer in peers:
            await peer.greet()
            await peer.send(*(calling(number, "echo") for number in range(calls)))
        for peer in peers:
            answers = [await peer.receive() for _ in range(calls)]
            assert {answer["id"] for answer in answers} == set(range(calls))
            assert not any(answer["result"]["isError"] for answer in answers)


async def test_no_more_requests_of_a_connection_are_read_than_may_lack_an_answer(tmp_path: Path) -> None:
    async with listening(tmp_path, rate=1000.0) as (server, _):
        peer = await Lines.to_socket(server.path)
        await peer.greet()
        await peer.send(*(calling(1, "patient", seconds=WAIT_S) for _ in range(MAX_UNANSWERED)))  # the same id, too
        await peer.send({"jsonrpc": "2.0", "id": "late", "method": "ping"})
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await peer.reader.readline()


POOL = httpx.Limits(max_connections=12)


async def call_over_http(client: httpx.AsyncClient, server: HttpServer) -> dict[str, Any]:
    said = await client.post(f"http://127.0.0.1:{server.port}/mcp", json=calling(1, "echo"), headers=HEADERS | BEARER)
    answer: dict[str, Any] = said.json()["result"]["structuredContent"]
    return answer


@pytest.mark.process
async def test_over_http_a_flood_waits_then_is_refused_and_another_connection_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mcp_ingress.http.LONGEST_WAIT_S", 0.1)
    async with listening(tmp_path, rate=2.0) as (_, server), httpx.AsyncClient(timeout=WAIT_S, limits=POOL) as flood:
        answers = await asyncio.gather(*(call_over_http(flood, server) for _ in range(48)))
        assert {answer.get("error_code") for answer in answers} == {None, "rate_limited"}
        async with httpx.AsyncClient(timeout=WAIT_S) as calm:
            assert (await call_over_http(calm, server))["success"]
