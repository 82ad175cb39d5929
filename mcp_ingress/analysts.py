"""Analysts' SQL over HTTP: `POST /sql` answers what `thalweg sql` answers.

It reads the same snapshot in the same kind of child process. A caller sees every namespace in the store, so questions
are answered only where a setting allows it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from mcp.server.transport_security import TransportSecurityMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from mcp_ingress.limits import RateLimits
from storage.sql.run import MAX_SQL_BYTES, run_sql
from storage.sql.snapshot import Snapshot
from streams.errors import RateLimited, Refused, ThalwegError, Unavailable

SQL_PATH = "/sql"
AT_ONCE = 2
MAX_BODY = 2 * MAX_SQL_BYTES
_BOUNDS: dict[str, tuple[type[int] | type[float], float, float]] = {
    "max_age_s": (float, 0, 86_400),
    "timeout_s": (float, 0.1, 30),
    "max_rows": (int, 1, 100_000),
}
SnapshotOf = Callable[[float, Any], Awaitable[tuple[Snapshot, dict[str, Any]]]]
"""(age in seconds, freshness token) -> a snapshot that old at most, or with the token applied, and what it lacks."""


class SqlEndpoint:
    """Answers at most AT_ONCE questions at a time.

    A question is `{"sql": …, "max_age_s"?, "freshness"?, "timeout_s"?, "max_rows"?}`. The answer
    has columns, types, rows and the snapshot's age in seconds.
    """

    def __init__(self, snapshot_of: SnapshotOf, limits: RateLimits) -> None:
        self._snapshot_of = snapshot_of
        self._limits = limits
        self._running = 0

    def route(self) -> Route:
        """Where it is served. Host, Origin and token are checked before, as for MCP; here that the body is JSON."""
        checked = TransportSecurityMiddleware()

        async def answer(request: Request) -> Response:
            return await checked.validate_request(request, is_post=True) or await self._answer(request)

        return Route(SQL_PATH, answer, methods=["POST"])

    async def _answer(self, request: Request) -> Response:
        try:
            if not request.state.is_paced:
                self._limits.take(request.state.principal.name, request.client)
            question = _read(await _body(request))
            return _json(200, await self._run(question))
        except Refused as error:
            status = 429 if isinstance(error, RateLimited) else 400
            return _json(status, {**error.extra, "error": error.error_code, "message": error.message})
        except Unavailable as error:
            return _json(503, {**error.extra, "error": error.code, "message": error.message})
        except ThalwegError as error:
            return _json(500, {"error": error.code, "message": error.message})

    async def _run(self, question: dict[str, Any]) -> dict[str, Any]:
        if self._running >= AT_ONCE:
            raise Unavailable(f"{AT_ONCE} questions are being answered; try again in a second.", retry_after_ms=1000)
        self._running += 1
        try:
            snapshot, gaps = await self._snapshot_of(
                float(question.pop("max_age_s", 1.0)), question.pop("freshness", None)
            )
            answer = await asyncio.to_thread(run_sql, snapshot.path, question.pop("sql"), **question)
            return answer.to_json() | gaps
        finally:
            self._running -= 1


async def _disabled(request: Request) -> Response:
    return _json(
        404,
        {
            "error": "disabled",
            "message": "SQL over HTTP is switched off on this node: start it with THALWEG_HTTP_SQL=1 "
            "(thalweg.toml: http_sql = true). It answers from every namespace. "
            "On the node's own machine `thalweg sql` needs no setting.",
        },
    )


DISABLED = Route(SQL_PATH, _disabled, methods=["POST"])
"""In place of the endpoint where no setting asks for it."""


async def _body(request: Request) -> bytes:
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise Refused(f"The body is longer than {MAX_BODY} bytes; send a shorter statement.")
    return body


def _read(body: bytes) -> dict[str, Any]:
    """The question of a request body. Raises Refused naming the field."""
    try:
        question = orjson.loads(body)
    except orjson.JSONDecodeError:
        question = None
    if not isinstance(question, dict) or not isinstance(question.get("sql"), str):
        raise Refused('The body must be a JSON object with a text `sql`, such as {"sql": "FROM sessions"}.')
    for name, value in question.items():
        if name in ("sql", "freshness"):
            continue
        if name not in _BOUNDS:
            raise Refused(f"There is no field `{name}`. Accepted: sql, freshness, {', '.join(_BOUNDS)}.")
        kind, least, most = _BOUNDS[name]
        if isinstance(value, bool) or not isinstance(value, int | kind) or not least <= value <= most:
            raise Refused(f"The field `{name}` must be a number from {least:g} to {most:g}.")
    return question


def _json(status: int, body: dict[str, Any]) -> Response:
    return Response(orjson.dumps(body), status, media_type="application/json")
