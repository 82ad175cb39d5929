"""Streamable HTTP, stateless, inside the node's event loop: Host and Origin checked, a bearer token unless on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_ingress.analysts import DISABLED, SqlEndpoint
from mcp_ingress.calls import Principal
from mcp_ingress.limits import PAUSE_S, RateLimits
from streams.errors import SettingsError

PATH = "/mcp"
HEALTH_PATH = "/healthz"
MAX_BODY = 4 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
START_S = 5.0
STOP_S = 2.0
LONGEST_WAIT_S = 1.0
"""How long a request waits for its client's turn before it is refused."""


class HttpServer:
    """One MCP server on host and port. `start`, then `stop`; `port` is the real one when 0 was asked for."""

    def __init__(
        self,
        server: Server[Any],
        principal: Principal,
        limits: RateLimits,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        allowed_hosts: Sequence[str] = (),
        analysts: SqlEndpoint | None = None,
    ) -> None:
        """`allowed_hosts`: further names under which callers may reach this host. `analysts`: answers SQL beside MCP. Raises SettingsError without a needed token."""
        if host not in LOOPBACK and not token:
            raise SettingsError(f"HTTP on {host} needs a bearer token: set `token`, or bind to 127.0.0.1.")
        self.host, self.port = host, port
        security = _security([*LOOPBACK, host, *allowed_hosts])
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_BODY,
            transport_security=security,
            custom_starlette_routes=[Route(HEALTH_PATH, _healthy), analysts.route(security) if analysts else DISABLED],
        )
        config = uvicorn.Config(
            _Authenticated(app, principal, token, limits),
            log_level="warning",
            access_log=False,
            log_config=None,  # what it says goes the way of every log line
            lifespan="on",
            timeout_graceful_shutdown=int(STOP_S),
            server_header=False,
        )
        self._uvicorn = _Embedded(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises SettingsError when the port is taken or the host is not of this machine."""
        listener = _bind(self.host, self.port)
        self.port = listener.getsockname()[1]
        self._task = asyncio.create_task(self._uvicorn.serve(sockets=[listener]), name="http")
        async with asyncio.timeout(START_S):
            while not self._uvicorn.started and not self._task.done():
                await asyncio.sleep(0.01)
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        """Answer what is running, then close; bounded and idempotent."""
        if self._task is None:
            return
        self._uvicorn.should_exit = True
        done, _ = await asyncio.wait([self._task], timeout=STOP_S + 1)
        if not done:
            self._task.cancel()
        self._task = None


class _Embedded(uvicorn.Server):
    """uvicorn without its signal handlers: signals belong to the node."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class _Authenticated:
    """Lets a request in only with the token (when there is one), and says who it is."""

    def __init__(self, app: ASGIApp, principal: Principal, token: str | None, limits: RateLimits) -> None:
        self._app = app
        self._principal = principal
        self._limits = limits
        self._expected = f"Bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            if scope["path"] == HEALTH_PATH:
                await self._app(scope, receive, send)
                return
            if not self._accepts(Headers(scope=scope).get("authorization", "")):
                refusal: Response = JSONResponse(
                    {"error": "unauthorized", "message": "A bearer token is needed: `Authorization: Bearer <token>`."},
                    status_code=401,
                    headers={"www-authenticate": "Bearer"},
                )
                await refusal(scope, receive, send)
                return
            scope.setdefault("state", {}).update(principal=self._principal, is_paced=await self._turn(scope))
        await self._app(scope, receive, send)

    async def _turn(self, scope: Scope) -> bool:
        """Wait while this client asks for more than the limits allow; whether it had its turn. Without it a call is refused."""
        peer = tuple(scope.get("client") or ())
        waited_s = 0.0
        while (wait_s := self._limits.take_or_wait(self._principal.name, peer)) and waited_s < LONGEST_WAIT_S:
            wait_s = max(wait_s, PAUSE_S)
            await asyncio.sleep(wait_s)
            waited_s += wait_s
        return not wait_s

    def _accepts(self, given: str) -> bool:
        return self._expected is None or hmac.compare_digest(given.encode("latin-1", "replace"), self._expected)


async def _healthy(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Host and Origin must be one of these names, with any port."""
    names = [f"[{host}]" if ":" in host else host for host in dict.fromkeys(hosts)]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=[*names, *(f"{name}:*" for name in names)],
        allowed_origins=[f"{scheme}://{name}{port}" for name in names for scheme in ("http", "https") for port in ("", ":*")],
    )


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)  # asyncio sets TCP_NODELAY only where TCP is named
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise SettingsError(f"HTTP cannot listen on {host}:{port}: {error.strerror or error}. Choose another port with `http`.") from None
    return listener
