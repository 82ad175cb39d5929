"""Streamable HTTP, stateless, in the node's event loop.

Every request names this host, does not come from a foreign page, and carries a token. Its headers may ask for a
namespace and tools, of those that the token gives.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.transport_security import TransportSecuritySettings
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_ingress.analysts import DISABLED, SQL_PATH, SqlEndpoint
from mcp_ingress.credentials import Credentials, GrantedToken
from mcp_ingress.door import Door, Principal
from mcp_ingress.limits import PAUSE_S
from mcp_ingress.scope import Scope as ConnectionScope
from streams.errors import Forbidden, Refused, SettingsError

PATH = "/mcp"
HEALTH_PATH = "/healthz"
METADATA_PATHS = (f"/.well-known/oauth-protected-resource{PATH}", "/.well-known/oauth-protected-resource")
WHO_GIVES = "The operator of the node says in its `credentials.toml` what a token gives."
OPEN_PATHS = (HEALTH_PATH, *METADATA_PATHS)
"""Paths without a token."""
MAX_BODY = 4 * 1024 * 1024
LOOPBACK = ("127.0.0.1", "localhost", "::1")
HTTP_PORT = 80
"""The port that a Host leaves out."""
START_S = 5.0
STOP_S = 2.0
LONGEST_WAIT_S = 1.0
"""How long a request waits for its client's turn before it is refused."""


@dataclass(frozen=True)
class Endpoint:
    """Where HTTP is served."""

    host: str = "127.0.0.1"
    port: int = 0
    allowed_hosts: Sequence[str] = ()
    """Further names (`NAME` or `NAME:PORT`) under which callers may reach this host."""


class HttpServer:
    """One MCP server on an endpoint, and analysts' SQL beside it. `start`, then `stop`; `port` is the real one."""

    def __init__(
        self,
        server: Server[Any],
        door: Door,
        credentials: Credentials,
        endpoint: Endpoint,
        *,
        analysts: SqlEndpoint | None = None,
    ) -> None:
        self.port = endpoint.port
        self._endpoint, self._door, self._credentials = endpoint, door, credentials
        self._app = server.streamable_http_app(
            streamable_http_path=PATH,
            json_response=True,
            stateless_http=True,
            max_request_body_size=MAX_BODY,
            # its `:*` is a prefix: see _Guard
            transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            custom_starlette_routes=[
                Route(HEALTH_PATH, _healthy),
                *(Route(path, _metadata) for path in METADATA_PATHS),
                analysts.route() if analysts else DISABLED,
            ],
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen. Raises SettingsError when the port is taken or the host is not of this machine."""
        endpoint = self._endpoint
        listener = _bind(endpoint.host, endpoint.port)
        self.port = listener.getsockname()[1]
        hosts = _hosts(endpoint.host, self.port, endpoint.allowed_hosts)
        config = uvicorn.Config(
            _Guard(self._app, self._door, self._credentials, hosts),
            log_level="warning",
            access_log=False,
            log_config=None,  # what it says goes the way of every log line
            lifespan="on",
            timeout_graceful_shutdown=int(STOP_S),
            server_header=False,
        )
        self._uvicorn = _Embedded(config)
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


class _Guard:
    """Lets a request in that names this host, comes from no foreign page and has a token.

    It names the principal and what that is served. Host and Origin are compared whole, so that no page reaches the node
    by a name of its own (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, door: Door, credentials: Credentials, hosts: frozenset[str]) -> None:
        self._app = app
        self._door = door
        self._credentials = credentials
        self._tokens = BearerAuthBackend(credentials)
        self._hosts = hosts
        self._origins = frozenset(f"{scheme}://{host}" for host in hosts for scheme in ("http", "https"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            refusal = self._foreign(Headers(scope=scope))
            if refusal is None and scope["path"] not in OPEN_PATHS:
                refusal = await self._admit(HTTPConnection(scope))
            if refusal is not None:
                await refusal(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _foreign(self, headers: Headers) -> Response | None:
        if [host.lower() for host in headers.getlist("host")] not in [[host] for host in self._hosts]:
            return _refuse(
                421,
                "foreign_host",
                "The Host of the request is not a name of this node; the setting `allowed_hosts` adds names.",
            )
        if any(origin.lower() not in self._origins for origin in headers.getlist("origin")):
            return _refuse(
                403,
                "foreign_origin",
                "The Origin of the request is not this node; the setting `allowed_hosts` adds names.",
            )
        return None

    async def _admit(self, request: HTTPConnection) -> Response | None:
        """Note who asks and what they are served, once it is their turn; or the refusal."""
        authenticated = await self._tokens.authenticate(request)
        if authenticated is None:
            return self._unauthorized(request)
        token = authenticated[1].access_token
        assert isinstance(token, GrantedToken)
        try:
            if request.url.path == SQL_PATH and not token.grant.sql:
                raise Forbidden("This credential does not give SQL, which reads every namespace.")
            principal, catalogue = self._door.admit(token.grant, ConnectionScope.of_headers(request.headers.raw))
        except Forbidden as refusal:
            return _refuse(403, refusal.code, f"{refusal.message} {WHO_GIVES}")
        except Refused as refusal:
            return _refuse(400, refusal.error_code, refusal.message)
        request.state.principal, request.state.catalogue = principal, catalogue
        request.state.is_paced = await self._turn(principal, tuple(request.client or ()))
        return None

    def _unauthorized(self, request: HTTPConnection) -> Response:
        """401 with where a token is found, and where the metadata of RFC 9728 is."""
        sentence = f"A bearer token is needed, `Authorization: Bearer <token>`: it is {self._credentials.place}."
        wrong = 'error="invalid_token", ' if request.headers.get("authorization") else ""
        challenge = f'Bearer {wrong}resource_metadata="{_base(request)}{METADATA_PATHS[0]}"'
        return _refuse(401, "unauthorized", sentence, {"www-authenticate": challenge})

    async def _turn(self, principal: Principal, peer: Hashable) -> bool:
        """Wait while this client asks for more than the limits allow; whether it had its turn."""
        waited_s = 0.0
        limits = self._door.limits
        while (wait_s := limits.take_or_wait(principal.name, peer)) and waited_s < LONGEST_WAIT_S:
            wait_s = max(wait_s, PAUSE_S)
            await asyncio.sleep(wait_s)
            waited_s += wait_s
        return not wait_s


def _refuse(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> Response:
    return JSONResponse({"error": code, "message": message}, status, headers)


async def _healthy(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _metadata(request: Request) -> Response:
    """RFC 9728: what is protected here. There is no authorization server: the operator gives the tokens out."""
    resource = f"{_base(request)}{PATH}"
    return JSONResponse({"resource": resource, "resource_name": "thalweg", "bearer_methods_supported": ["header"]})


def _base(request: HTTPConnection) -> str:
    """The URL of this node as the client has named it; the name was checked."""
    return f"{request.url.scheme}://{request.headers['host']}"


def _hosts(host: str, port: int, allowed: Sequence[str]) -> frozenset[str]:
    """Each accepted value of Host. A further name without a port stands for this port, and for none (a proxy's own)."""
    names = [f"{f'[{name}]' if ':' in name else name}:{port}" for name in (*LOOPBACK, host)]
    for name in allowed:
        has_port = name.rpartition(":")[2].isdecimal()
        names += [name] if has_port else [name, f"{name}:{port}"]
    if port == HTTP_PORT:
        names += [name.removesuffix(f":{HTTP_PORT}") for name in names]
    return frozenset(name.lower() for name in names)


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sets TCP_NODELAY only where TCP is named
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(128)
    except OSError as error:
        listener.close()
        raise SettingsError(
            f"HTTP cannot listen on {host}:{port}: {error.strerror or error}. Choose another port with `http`."
        ) from None
    return listener
