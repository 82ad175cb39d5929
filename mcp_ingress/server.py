"""The MCP server: protocol on one side, the door on the other. It serves both protocol eras and has no state."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Container, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from weakref import WeakKeyDictionary

from mcp import MCPError
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
    PaginatedRequestParams,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplate,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp.types import Resource as WireResource
from mcp.types import Tool as WireTool
from pydantic import ValidationError

from mcp_ingress.call import ClientConnection
from mcp_ingress.catalogue import Catalogue
from mcp_ingress.door import Answer, Door, Failure, Principal, Request, Visitor
from mcp_ingress.inventory import hints
from mcp_ingress.records import MAX_NAME
from mcp_ingress.resource import MIME_TYPE, Resource, base_of
from mcp_ingress.scope import Scope
from mcp_ingress.spans import Spans
from mcp_ingress.tool import Tool
from mcp_ingress.toolset import INVALID_PARAMS, Pulse, Toolset
from streams.errors import UnknownTool
from streams.ids import derived_id
from streams.positions import Freshness
from streams.redaction import excerpt, redact

NAME = "thalweg"
RESOURCE_NOT_FOUND = "Resource not found"
OLD_NOT_FOUND, LAST_OLD_PROTOCOL = -32002, "2025-11-25"
"""The code of a resource that is not there, and the last version of the protocol that has it."""
CLIENT_INFO_META = "io.modelcontextprotocol/clientInfo"
LIST_TTL_MS = 300_000
LISTS = ("tools/list", "resources/list", "resources/templates/list")
GREETINGS = ("initialize", "server/discover")
"""Methods whose answers have the instructions."""
_NAMED = re.compile(r"`([^`]+)`")
MAX_WRITERS = 10_000
"""Of this many principals the last writes over HTTP are known; a read of the others does not wait for theirs."""
NO_DEFAULTS: Mapping[str, Any] = {}
DEFAULT_DIM = 384
"""Numbers of a vector of the default model."""
INTRODUCTION = (
    "thalweg is a durable memory. "
    "What you write is on a log before the answer comes, and searchable within about a second."
)
CONVENTIONS = """\
A write answers with `freshness`; reads on the same connection wait for your own last writes by themselves.
`pending: true` means accepted, not applied yet: not an error, nothing to repeat. \
`degraded: true` means that a part is down; go on.
A row with `truncated: true` shows a part of its text; the resource in `whole` has all of it. \
`more: true`: not all rows fit, and `next` says how to ask on.
An error's message names the argument and what is accepted."""


class Pulses(ServerMiddleware[Any]):
    """Lifts a toolset's pulse to the top level of the result, where only a middleware can put it."""

    def __init__(self, pulses: Iterable[Pulse]) -> None:
        self._fields = {pulse.meta: pulse.field for pulse in pulses}

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/call" and isinstance(result, dict):
            meta = result.get("_meta") or {}
            result |= {field: meta[name] for name, field in self._fields.items() if name in meta}
        return result


class Lists(ServerMiddleware[Any]):
    """Caches the answers of the lists, which stay the same for a catalogue.

    The SDK takes 10 ms to make the one of tools/list.
    """

    def __init__(self, door: Door) -> None:
        self._door = door
        self._known: WeakKeyDictionary[Catalogue, dict[tuple[str, str], HandlerResult]] = WeakKeyDictionary()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method not in LISTS or set(ctx.params or {}) - {"_meta"}:
            return await call_next(ctx)
        known = self._known.setdefault(_catalogue(ctx, self._door), {})
        key = ctx.method, ctx.protocol_version
        if key not in known:
            known[key] = await call_next(ctx)
        return known[key]


class Instructions(ServerMiddleware[Any]):
    """Tells a client of the toolsets that it is served, where the SDK tells of all."""

    def __init__(self, door: Door) -> None:
        self._door = door

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method in GREETINGS and isinstance(result, dict):
            served = _catalogue(ctx, self._door)
            result = {**result, "instructions": instructions(served.toolsets, served.tools)}
        return result


class MalformedParams(ServerMiddleware[Any]):
    """Says which parameter of a request is malformed, and how; the SDK's own answer says only that one is."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        try:
            return await call_next(ctx)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise MCPError(
                code=INVALID_PARAMS,
                message=f"Invalid parameters of {excerpt(ctx.method)}: {excerpt(where)}: {excerpt(first['msg'])}",
            ) from None


class _Handlers:
    """What the server asks for each request, answered by the door."""

    def __init__(self, door: Door) -> None:
        self.door = door
        self._written: dict[Principal, Freshness] = {}
        embedder = door.services.embedder
        dim = None if embedder is None else embedder.info.dim
        defaults = {tool.name: tool.defaults(door.services) for tool in door.inventory if tool.defaults is not None}
        self._tools = [self._wire_tool(tool, dim, defaults.get(tool.name, NO_DEFAULTS)) for tool in door.inventory]

    def _wire_tool(self, tool: Tool, dim: int | None, defaults: Mapping[str, Any]) -> WireTool:
        shown = wire_tool(tool, dim, defaults)
        is_listed = self.door.output_schemas or self.door.inventory.toolset(tool).lists_output_schemas
        return shown if is_listed else shown.model_copy(update={"output_schema": None})

    @asynccontextmanager
    async def visit(self, _: Server[Visitor]) -> AsyncIterator[Visitor]:
        yield self.door.visit(Scope())

    async def list_tools(
        self, ctx: ServerRequestContext[Visitor], params: PaginatedRequestParams | None
    ) -> ListToolsResult:
        served = _catalogue(ctx, self.door)
        return ListToolsResult(tools=[tool for tool in self._tools if tool.name in served])

    async def call_tool(self, ctx: ServerRequestContext[Visitor], params: CallToolRequestParams) -> CallToolResult:
        visitor = _visitor(ctx, self._written)
        try:
            answer = await self.door.call(visitor, Request(params.name, params.arguments, dict(ctx.meta or {})))
        except UnknownTool as unknown:
            raise MCPError(code=INVALID_PARAMS, message=unknown.message, data=unknown.extra or None) from None
        if ctx.request is not None:
            known = self._written.get(visitor.principal, Freshness())
            self._written[visitor.principal] = known.merged(visitor.connection.last_writes)
            if len(self._written) > MAX_WRITERS:
                del self._written[next(iter(self._written))]
        if answer.failure is not None and answer.failure.plane == "jsonrpc":
            message = answer.failure.message
            data = {name: value for name, value in answer.body.items() if value != message}
            raise MCPError(code=answer.failure.rpc_code, message=message, data=data)
        return wire_answer(answer, is_brief=_client(ctx) in self.door.structured_clients)

    async def list_resources(
        self, ctx: ServerRequestContext[Visitor], params: PaginatedRequestParams | None
    ) -> ListResourcesResult:
        resources = _catalogue(ctx, self.door).resources.values()
        return ListResourcesResult(resources=[wire_resource(each) for each in resources if each.path is None])

    async def list_templates(
        self, ctx: ServerRequestContext[Visitor], params: PaginatedRequestParams | None
    ) -> ListResourceTemplatesResult:
        resources = _catalogue(ctx, self.door).resources.values()
        templates = [wire_template(each) for each in resources if each.template]
        return ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, ctx: ServerRequestContext[Visitor], params: ReadResourceRequestParams
    ) -> ReadResourceResult:
        try:
            answer = await self.door.read(_visitor(ctx, self._written), params.uri, dict(ctx.meta or {}))
        except UnknownTool:
            raise _unknown_resource(ctx, _catalogue(ctx, self.door), params.uri) from None
        if answer.failure is not None:
            raise _unread(ctx, params.uri, answer.failure, answer.body)
        text = TextResourceContents(uri=redact(params.uri), mime_type=MIME_TYPE, text=answer.text)
        return ReadResourceResult(contents=[text])


def build_server(door: Door, version: str) -> Server[Visitor]:
    """The server of the door's tools.

    Each stream connection is a visitor of its own. An HTTP request is one too; it waits for what its credential has
    written to the namespace over HTTP so far, because it has no connection that would know.
    """
    handlers = _Handlers(door)
    toolsets = [door.inventory.toolsets[name] for name in door.inventory.served]
    schemas = {tool.name: dict(tool.input_schema) for tool in door.inventory}
    reads: dict[str, Any] = {}
    if door.resources.resources:
        reads = {
            "on_list_resources": handlers.list_resources,
            "on_list_resource_templates": handlers.list_templates,
            "on_read_resource": handlers.read_resource,
        }
    server: Server[Visitor] = Server(
        NAME,
        version=version,
        title="thalweg",
        instructions=instructions(toolsets, door.inventory.tools),
        lifespan=handlers.visit,
        on_list_tools=handlers.list_tools,
        on_call_tool=handlers.call_tool,
        get_tool_input_schema=schemas.get,
        **reads,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_TTL_MS, scope="private")},
    )
    pulses = [toolset.pulse for toolset in toolsets if toolset.pulse is not None]
    server.middleware[:] = [Spans(), MalformedParams(), Instructions(door), Lists(door), Pulses(pulses)]
    return server


def wire_tool(tool: Tool, dim: int | None = DEFAULT_DIM, defaults: Mapping[str, Any] = NO_DEFAULTS) -> WireTool:
    """The tool as tools/list shows it.

    `dim` is the length of the node's vectors, None when it makes none; `defaults` are those of its settings.
    """
    return WireTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_listed(_with_defaults(_with_dimension(tool.input_schema, dim), defaults)),
        output_schema=dict(tool.output_schema),
        annotations=ToolAnnotations.model_validate({"title": tool.title, **hints(tool)}),
        _meta={"anthropic/alwaysLoad": True} if tool.always_load else None,
    )


def wire_resource(resource: Resource) -> WireResource:
    """The resource as resources/list shows it."""
    return WireResource(
        name=resource.name,
        title=resource.title,
        uri=resource.uri,
        description=resource.description,
        mime_type=MIME_TYPE,
    )


def wire_template(resource: Resource) -> ResourceTemplate:
    """The resource with its parameters, as resources/templates/list shows it."""
    return ResourceTemplate(
        name=resource.name,
        title=resource.title,
        uri_template=resource.template or resource.uri,
        description=resource.description,
        mime_type=MIME_TYPE,
    )


def _unknown_resource(ctx: ServerRequestContext[Visitor], served: Catalogue, uri: str) -> MCPError:
    known = ", ".join(served.resources)
    details = f"There is no resource {excerpt(uri)!r}; there are {known}."
    body = {"error": RESOURCE_NOT_FOUND, "details": details, "tool": excerpt(base_of(uri))}
    return _unread(ctx, uri, Failure("resource_not_found", RESOURCE_NOT_FOUND, INVALID_PARAMS, "jsonrpc"), body)


def _unread(ctx: ServerRequestContext[Visitor], uri: str, failure: Failure, body: Mapping[str, Any]) -> MCPError:
    """A failed read as a JSON-RPC error.

    The older protocol era has a code of its own for a resource that is not there.
    """
    is_old = failure.code == "resource_not_found" and ctx.protocol_version <= LAST_OLD_PROTOCOL
    code = OLD_NOT_FOUND if is_old else failure.rpc_code
    return MCPError(code=code, message=failure.message, data={**body, "resource": excerpt(uri, MAX_NAME)})


def instructions(toolsets: Iterable[Toolset], tools: Container[str]) -> str:
    """The server's instructions for a client that has these toolsets and tools.

    They say what it is, which tool is for what, and what holds for all. They name no tool that the client lacks.
    """
    return "\n".join([INTRODUCTION, *filter(None, (_guide(each, tools) for each in toolsets)), CONVENTIONS])


def _guide(toolset: Toolset, tools: Container[str]) -> str | None:
    """What the toolset's tools are for, as far as the client has them; None where nothing is to be said."""
    clauses = [clause for clause in toolset.guide if all(name in tools for name in _NAMED.findall(clause))]
    said = f": {'; '.join(clauses)}" if clauses else ""
    return f"{toolset.purpose}{said}." if toolset.purpose and (clauses or not toolset.guide) else None


def wire_answer(answer: Answer, *, is_brief: bool = False) -> CallToolResult:
    """The answer as a tool result: the object, and the same as text for clients that show only text.

    `is_brief`: the text only says where the answer is, because the client shows the object. An error's text is whole.
    """
    text = _brief(answer.body) if is_brief and not answer.is_error else answer.text
    return CallToolResult(
        content=[TextContent(type="text", text=text)],
        structured_content=answer.body,
        is_error=answer.is_error,
        _meta=answer.meta,
    )


def _brief(body: Mapping[str, Any]) -> str:
    """Where the answer is, and how many rows each of its lists has."""
    counts = ", ".join(f"{len(rows)} {name}" for name, rows in body.items() if isinstance(rows, list))
    return f"The structured content is the answer{f': {counts}' if counts else ''}."


def _visitor(ctx: ServerRequestContext[Visitor], written: Mapping[Principal, Freshness]) -> Visitor:
    visitor = ctx.lifespan_context
    if ctx.request is None:
        if visitor.connection.client is None:
            visitor.connection.client = _client(ctx)
        return visitor
    # HTTP is stateless: the credential was checked for this request alone
    principal: Principal = ctx.request.state.principal
    client, peer = _client(ctx), ctx.request.client
    # clients close idle TCP connections within seconds: the credential, the address and the client's name stand for one
    identity = derived_id("connection", principal.name, principal.namespace, peer.host if peer else "", client or "")
    connection = ClientConnection(identity, client, written.get(principal, Freshness()))
    state = ctx.request.state
    return Visitor(principal, connection, state.catalogue, peer, is_paced=state.is_paced)


def _catalogue(ctx: ServerRequestContext[Visitor], door: Door) -> Catalogue:
    """What the client of a request is served."""
    visitor = ctx.lifespan_context
    served = visitor.catalogue if ctx.request is None else ctx.request.state.catalogue
    return served or door.catalogues.of(door.grant, Scope())


def _client(ctx: ServerRequestContext[Visitor]) -> str | None:
    params = ctx.session.client_params
    if params is not None:
        return params.client_info.name
    info = (ctx.meta or {}).get(CLIENT_INFO_META)
    return str(info.get("name")) if isinstance(info, dict) else None


def _with_dimension(schema: Mapping[str, Any], dim: int | None) -> dict[str, Any]:
    """Arguments that are a vector (`x-embedding`) with the length that is accepted here. The tool itself checks it."""
    properties = {}
    for name, value in schema["properties"].items():
        if value.get("x-embedding"):
            bounds = {} if dim is None else {"minItems": dim, "maxItems": dim}
            value = {key: item for key, item in value.items() if key != "x-embedding"} | bounds
            value["description"] = value["description"].replace("{dim}", "n" if dim is None else str(dim))
        properties[name] = value
    return {**schema, "properties": properties}


def _with_defaults(schema: Mapping[str, Any], defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with these defaults of its arguments in place of its own."""
    properties = schema["properties"]
    own = {name: {**properties[name], "default": default} for name, default in defaults.items()}
    return {**schema, "properties": {**properties, **own}}


def _listed(schema: Any) -> Any:
    """The schema as clients are shown it: without our `x-` keywords and what holds for every tool.

    That an object takes no other names is said where it takes none at all, and by the refusal of one: in each schema it
    would be a twentieth of what the tools cost a model.
    """
    if isinstance(schema, list):
        return [_listed(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    is_said = bool(schema.get("properties")) and schema.get("additionalProperties") is False
    return {
        name: _listed(value)
        for name, value in schema.items()
        if not name.startswith("x-") and not (is_said and name == "additionalProperties")
    }
