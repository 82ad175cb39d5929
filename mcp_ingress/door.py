"""The one path of every call: principal → rate → schema → run under a limit of time → record → answer.

Nothing else runs a tool. Every call leaves one record on the log, whatever came of it; the records never hold bodies.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Collection, Hashable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson

from mcp_ingress import spans
from mcp_ingress.arguments import check_texts
from mcp_ingress.call import Call, ClientConnection
from mcp_ingress.catalogue import Catalogue, Catalogues
from mcp_ingress.fitting.fit import fit
from mcp_ingress.fitting.nearest import fitted
from mcp_ingress.fitting.truncation import NOTHING_LONG
from mcp_ingress.inventory import Inventory
from mcp_ingress.invocations import BackgroundPublisher
from mcp_ingress.limits import LOCAL, RATE, RateLimits
from mcp_ingress.records import MAX_NAME, Invocation, session_of
from mcp_ingress.resource import Resources, arguments_of
from mcp_ingress.scope import ANY, Grant, Scope
from mcp_ingress.services import Services
from mcp_ingress.tool import Tool
from mcp_ingress.toolset import Plane
from mcp_ingress.turns import READS_AT_ONCE, WRITES_AT_ONCE, Turns
from mcp_ingress.writes import ACCEPTED
from processors.memory.vector_facts import VECTOR_STAGE
from streams.errors import (
    Defect,
    PulseUnavailable,
    RateLimited,
    Refused,
    ThalwegError,
    TimedOut,
    Unavailable,
    UnknownTool,
)
from streams.ids import derived_id, uuid7
from streams.positions import Freshness
from streams.redaction import excerpt, redact, redact_json

REQUEST_ID_META = "thalweg/request_id"
TOOL_USE_META = "claudecode/toolUseId"
FRESHNESS_META = "thalweg/freshness"
MAX_REQUEST_ID = 256
MAX_MESSAGE = 2000
"""Characters of a refusal's sentence."""
SEARCHABLE_WAIT_S = 0.1
"""How long at most an answered write counts as running, until it can be searched for."""
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller: its name for limits, and the namespace that its credential (never an argument) gives."""

    name: str
    namespace: str


@dataclass(slots=True)
class Visitor:
    """A principal on a connection."""

    principal: Principal
    connection: ClientConnection = field(default_factory=ClientConnection)
    catalogue: Catalogue | None = None
    """The tools and resources that it is served; None: all that the door has."""
    peer: Hashable = None
    """Which of the principal's connections it is, for the limits."""
    is_paced: bool = False
    """Whether its transport has waited for the limits already, so that no call of it needs to be refused."""
    reads: Turns = field(default_factory=lambda: Turns(READS_AT_ONCE))
    writes: Turns = field(default_factory=lambda: Turns(WRITES_AT_ONCE))


@dataclass(frozen=True, slots=True)
class Request:
    """A tool call as it came in."""

    tool: str
    arguments: Any
    meta: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a call failed: the toolset's code, a sentence or category, and the JSON-RPC form of both."""

    code: str
    message: str
    rpc_code: int
    plane: Plane


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a call: its object, the same as JSON text, its `_meta`, and the failure, if any."""

    body: dict[str, Any]
    text: str
    meta: dict[str, Any] | None = None
    failure: Failure | None = None

    @property
    def is_error(self) -> bool:
        return self.failure is not None


class Door:
    """The tools that are served, and what a call of one needs. `start` before the first call, `stop` after the last."""

    def __init__(
        self,
        services: Services,
        inventory: Inventory,
        resources: Resources | None = None,
        *,
        namespace: str = "default",
        rate_limit: float = RATE,
        output_schemas: bool = False,
        structured_clients: Collection[str] = (),
    ) -> None:
        """`output_schemas`: tools/list shows those of all tools. `structured_clients`: names of clients that give their
        model the structured content, so that an answer's text need not say it again.
        """
        self.services = services
        self.inventory = inventory
        self.resources = resources or Resources()
        self.output_schemas, self.structured_clients = output_schemas, frozenset(structured_clients)
        self.local = Principal(LOCAL, namespace)
        self.grant = Grant(LOCAL, (namespace, ANY))
        """What a client of the socket may see."""
        self.catalogues = Catalogues(inventory, self.resources)
        self.limits = RateLimits(services.clock, rate_limit)
        self.publisher = BackgroundPublisher(services.log)
        services.flush_records, services.leave_record = self.publisher.flush, self.publisher.put
        self.calls = 0
        self._is_read_only = all(tool.kind == "read" for tool in inventory.tools.values())
        self._ending: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        """Begin to publish records of calls."""
        self.publisher.start()

    async def stop(self, timeout_s: float = 1.0) -> None:
        """Publish the records that wait, for at most `timeout_s`."""
        await self.publisher.stop(timeout_s)

    def status(self) -> dict[str, Any]:
        """Counts for `thalweg status`: calls, records published, waiting and dropped, bytes in the spool."""
        return {
            "tools": len(self.inventory),
            "calls": self.calls,
            "records_published": self.publisher.published,
            "records_waiting": self.publisher.waiting,
            "records_dropped": self.publisher.dropped,
            "spool_bytes": self.services.spool.size_bytes,
        }

    def visit(self, scope: Scope) -> Visitor:
        """A client of the socket, which reads no faster than the limits allow. Raises Refused."""
        principal, catalogue = self.admit(self.grant, scope)
        return Visitor(principal, catalogue=catalogue, is_paced=True)

    def admit(self, grant: Grant, scope: Scope) -> tuple[Principal, Catalogue]:
        """Who a client is, and what it is served of what its credential gives. Raises Refused, Forbidden."""
        return Principal(grant.principal, grant.namespace(scope.namespace)), self.catalogues.of(grant, scope)

    async def call(self, visitor: Visitor, request: Request) -> Answer:
        """Answer one call. Raises UnknownTool; every other failure is an answer with `is_error`."""
        return await self._handle(visitor, request, self.inventory.tools.get(request.tool))

    async def _handle(self, visitor: Visitor, raw: Request, tool: Tool | None) -> Answer:
        """Answer a request as it came. Here its secrets end: no tool, record, refusal or log sees them."""
        self.calls += 1
        request = Request(excerpt(raw.tool, MAX_NAME), _without_secrets(raw.arguments), raw.meta)
        record = Invocation(
            request.tool, tool, visitor.principal.namespace, visitor.connection, request.arguments, self.services.clock
        )
        leaves_no_details = self.inventory.toolset(tool).leaves_no_details
        record.is_minimal = leaves_no_details is not None and leaves_no_details(self.services)
        try:
            answer = await self._answer(visitor, request, tool, record)
            record.output_bytes = len(answer.text)
            return answer
        except UnknownTool:
            record.failed("unknown_tool", "unknown_tool")
            raise
        except asyncio.CancelledError:
            record.failed("cancelled", "cancelled")
            raise
        finally:
            self._publish(record)

    def _publish(self, record: Invocation) -> None:
        """Queue the record of a call that has ended, and its session's telemetry of it."""
        record.session_id = self._session_of(record.arguments, record.connection)
        self.publisher.put(*record.record())
        sessions, session_id = self.inventory.sessions, record.session_id
        if sessions is None or session_id is None or record.is_minimal or record.tool is None:
            return
        if record.outcome != "rate_limited":
            self.publisher.put(*sessions.telemetry(record, session_id))

    def _session_of(self, arguments: Any, connection: ClientConnection) -> str | None:
        sessions = self.inventory.sessions
        return None if sessions is None else session_of(arguments, connection, sessions.is_id)

    async def read(self, visitor: Visitor, uri: str, meta: Mapping[str, Any]) -> Answer:
        """Answer one read of a resource: a call like any other. Raises UnknownTool."""
        name = self.resources.name_of(uri)
        return await self._handle(visitor, Request(name, {"uri": uri}, meta), self.resources.tools.get(name))

    async def _answer(self, visitor: Visitor, request: Request, tool: Tool | None, record: Invocation) -> Answer:
        call: Call | None = None
        served = visitor.catalogue
        try:
            if not visitor.is_paced:
                self.limits.take(visitor.principal.name, visitor.peer)
            if tool is None:
                raise self.inventory.unknown(request.tool, None if served is None else served.tools)
            if served is not None and tool.name not in served:
                raise served.refusal(tool)
            self.services.note_call(record.namespace, is_activity=tool.is_activity)
            call = self._call(visitor, request, tool, record)
            gate = self.inventory.toolset(tool).gate
            if gate is not None:
                gate(call)
            arguments = self._checked(tool, request.arguments)
            async with self._turn(visitor, tool):
                body = await self._run(tool, call, arguments)
            text = _json(body := _with_gaps(tool, body, call.gaps) if tool.kind == "read" else body)
        except UnknownTool as unknown:
            unknown.extra |= await self._of_retired(request.tool, record.namespace)
            raise
        except Exception as error:
            failure, body = self._failed(error, request.tool, tool, call, record)
            return await self._complete(tool, record, body, _json(body), failure)
        if body.get("success") is False:
            record.failed("error", str(body.get("error_code") or "degraded"))
        return await self._complete(tool, record, body, text)

    def _failed(
        self, error: Exception, name: str, tool: Tool | None, call: Call | None, record: Invocation
    ) -> tuple[Failure, dict[str, Any]]:
        """What went wrong and the body that says so, as the tool's toolset says it; the record gets its code."""
        if not isinstance(error, ThalwegError):
            logger.error("the tool %s failed", name, exc_info=error)
            error = Defect(f"The tool {name} failed inside ({type(error).__name__}); the node's log says more.")
        code = error.error_code if isinstance(error, Refused) else error.code
        style = self.inventory.toolset(tool).errors
        reason = style.code(code)
        own = (tool.unavailable_code if tool is not None and isinstance(error, Unavailable) else None) or reason
        match error:
            case RateLimited():
                record.failed("rate_limited", own)
            case Refused():
                record.failed("refused", own)
            case TimedOut():
                record.failed("timeout", code)
            case _:
                record.failed("error", own)
        spans.describe_failure(own)
        is_refusal = isinstance(error, Refused)
        extra = {**style.explanation(error, reason), **error.extra, **(_staleness(tool, call) if is_refusal else {})}
        message = excerpt(error.message, MAX_MESSAGE)
        body = fit(style.body(name, own, message, extra, degraded=isinstance(error, Unavailable)), NOTHING_LONG, {})
        category = str(body.get("error", message))
        return Failure(own, category, style.rpc_code(own, is_refusal=is_refusal), style.plane), body

    def _checked(self, tool: Tool, given: Any) -> dict[str, Any]:
        """A resource's parameters stand in its URI."""
        if tool.name in self.resources.tools:
            parameters = arguments_of(self.resources.resources[tool.name], given["uri"])
            return self.resources.checks[tool.name]({**parameters, "uri": given["uri"]})
        return self.inventory.checks[tool.name](given)

    def _call(self, visitor: Visitor, request: Request, tool: Tool, record: Invocation) -> Call:
        meta = request.meta
        token = meta.get(FRESHNESS_META)
        traceparent = meta.get("traceparent")
        named = _request_id(meta)
        call = Call(
            services=self.services,
            connection=visitor.connection,
            namespace=visitor.principal.namespace,
            request_id=named or str(uuid7()),
            is_named=named is not None,
            is_read_only=self._is_read_only or (visitor.catalogue is not None and visitor.catalogue.read_only),
            freshness=visitor.connection.last_writes if token is None else self.services.applied.token(token),
            traceparent=traceparent if isinstance(traceparent, str) and _TRACEPARENT.fullmatch(traceparent) else None,
            session_id=self._session_of(request.arguments, visitor.connection),
            deadline=self.services.clock.monotonic() + tool.timeout_s,
        )
        record.request_id = call.request_id
        spans.describe_call(memory_operation=tool.memory_operation, toolset=tool.toolset, session_id=call.session_id)
        return call

    @asynccontextmanager
    async def _turn(self, visitor: Visitor, tool: Tool) -> AsyncIterator[None]:
        """Wait for the connection's turn; a write runs until what it wrote is processed."""
        turns = visitor.reads if tool.kind == "read" else visitor.writes
        await turns.take()
        before = visitor.connection.last_writes
        started = self.services.clock.monotonic()
        try:
            yield
        finally:
            written = visitor.connection.last_writes
            if written is before:
                self._end(turns, started)
            else:
                ending = asyncio.create_task(self._end_when_processed(turns, started, written))
                self._ending.add(ending)
                ending.add_done_callback(self._ending.discard)

    async def _end_when_processed(self, turns: Turns, started: float, written: Freshness) -> None:
        try:
            await self.services.applied.wait(written, timeout_s=SEARCHABLE_WAIT_S, stages=(VECTOR_STAGE,), patient=True)
        finally:
            self._end(turns, started)

    def _end(self, turns: Turns, started: float) -> None:
        turns.give(self.services.clock.monotonic() - started, is_shared=self.limits.is_shared())

    async def _run(self, tool: Tool, call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
        with anyio.move_on_after(tool.timeout_s), self.services.indexes.serving():
            if call.is_named and tool.kind != "read":
                call.requested_at = await self.services.first_requested(call.namespace, call.request_id)
            return await fitted(call, tool.truncation, arguments, await tool.handler(call, arguments))
        raise TimedOut(f"The tool {tool.name} did not answer within {tool.timeout_s:g} s.")

    async def _complete(
        self, tool: Tool | None, record: Invocation, body: dict[str, Any], text: str, failure: Failure | None = None
    ) -> Answer:
        """The answer with what goes around it: the freshness of a write, and the toolset's pulse."""
        meta: dict[str, Any] = {}
        if body.get("freshness"):
            meta[FRESHNESS_META] = body["freshness"]
        pulse = self.inventory.toolset(tool).pulse
        if pulse is not None:
            try:
                meta[pulse.meta] = beat = body.get(pulse.field) or await pulse.read(self.services, record.namespace)
                body = {**body, pulse.field: beat}
            except Exception as error:
                if failure is None:
                    failure, body = self._without_pulse(error, tool, record, body)
            text = _json(body)
        return Answer(body, text, meta or None, failure)

    async def _of_retired(self, name: str, namespace: str) -> dict[str, Any]:
        """What the refusal of a retired name has of its toolset, while its pulse can be read."""
        toolset = self.inventory.toolset_of_retired(name)
        if toolset is not None and (pulse := toolset.pulse) is not None:
            with suppress(ThalwegError):
                return {"reason": "retired_tool", pulse.field: await pulse.read(self.services, namespace)}
        return {}

    def _without_pulse(
        self, error: Exception, tool: Tool | None, record: Invocation, body: Mapping[str, Any]
    ) -> tuple[Failure, dict[str, Any]]:
        """The failure of a call whose toolset's pulse cannot be read: a write that was accepted stands."""
        logger.error("the pulse of the tool %s failed", record.name, exc_info=error)
        written = {"freshness": body["freshness"]} if body.get("freshness") else {}
        message = f"The pulse cannot be read ({type(error).__name__}): the call fails. {ACCEPTED if written else ''}"
        return self._failed(PulseUnavailable(message.strip(), **written), record.name, tool, None, record)


def _staleness(tool: Tool | None, call: Call | None) -> dict[str, Any]:
    """What a refusal says of the store that it was decided on."""
    if call is None or tool is None:
        return {}
    return ({"stale": True} if call.is_stale else {}) | (dict(call.gaps) if tool.kind == "read" else {})


def _with_gaps(tool: Tool, body: dict[str, Any], gaps: Mapping[str, Any]) -> dict[str, Any]:
    """A read's answer with what it lacks, where its contract has such notes."""
    if not gaps or tool.notes_under is None:
        return {**body, **gaps}
    return {**body, tool.notes_under: {**body[tool.notes_under], **gaps}}


def _json(body: dict[str, Any]) -> str:
    """As JSON text. Raises TypeError for a value that is not plain JSON, which is a defect of the tool."""
    return orjson.dumps(body, option=orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS).decode()


def _without_secrets(arguments: Any) -> Any:
    try:
        raw = orjson.dumps(arguments)
    except TypeError:  # not JSON (a lone surrogate, a huge integer): it will be refused
        return arguments
    clean = redact_json(raw)
    return arguments if clean is raw else orjson.loads(clean)


def _request_id(meta: Mapping[str, Any]) -> str | None:
    """The caller's id of this request, if it named one. Raises Refused when it cannot be one."""
    for name in (REQUEST_ID_META, TOOL_USE_META):
        given = meta.get(name)
        if given is None:
            continue
        if not isinstance(given, str) or not 0 < len(given) <= MAX_REQUEST_ID:
            raise Refused(f'The request id in _meta["{name}"] must be a text of 1 to {MAX_REQUEST_ID} characters.')
        check_texts(given, f"_meta.{name}")
        return given if redact(given) == given else derived_id("request", given)  # its resend has the same
    return None
