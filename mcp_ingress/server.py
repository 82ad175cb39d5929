"""The MCP server: protocol on one side, the door on the other. It serves both protocol eras and holds no state of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from mcp import MCPError
from mcp.server import Server
from mcp.server.caching import CacheHint
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from mcp.types import (
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as WireTool

from mcp_ingress.calls import PULSE_FIELD, PULSE_META, Answer, Door, Principal, Request, UnknownTool, Visitor
from mcp_ingress.inventory import hints
from mcp_ingress.spans import Spans
from mcp_ingress.tool import Tool

NAME = "thalweg"
INVALID_PARAMS = -32602
CLIENT_INFO_META = "io.modelcontextprotocol/clientInfo"
LIST_TTL_MS = 300_000
INSTRUCTIONS = """\
thalweg is a durable memory. What you write is on a log before the answer comes, and searchable within about a second.
Begin with session_open and end with session_close; in between write down what you learn, decide, observe and stumble over \
(journal_write, friction_log, reflect), and look before you act (journal_query, pattern_check, graph_query).
A write answers with `freshness`; reads on the same connection wait for your own last writes by themselves.
`pending: true` means accepted, not applied yet: not an error, nothing to repeat. `degraded: true` means that a part is down; go on.
An error's message names the argument and what is accepted."""


class Pulses(ServerMiddleware[Any]):
    """Lifts a toolset's pulse to the top level of the result, where only a middleware can put it."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/call" and isinstance(result, dict) and PULSE_META in (result.get("_meta") or {}):
            result[PULSE_FIELD] = result["_meta"][PULSE_META]
        return result


def build_server(door: Door, version: str) -> Server[Visitor]:
    """The server of the door's tools. Each stream connection is a visitor of its own; an HTTP request is one too."""
    listed = ListToolsResult(tools=[wire_tool(tool) for tool in door.inventory])
    schemas = {tool.name: dict(tool.input_schema) for tool in door.inventory}

    @asynccontextmanager
    async def visit(_: Server[Visitor]) -> AsyncIterator[Visitor]:
        yield Visitor(door.local)

    async def list_tools(ctx: ServerRequestContext[Visitor], params: PaginatedRequestParams | None) -> ListToolsResult:
        return listed

    async def call_tool(ctx: ServerRequestContext[Visitor], params: CallToolRequestParams) -> CallToolResult:
        try:
            answer = await door.call(_visitor(ctx), Request(params.name, params.arguments, dict(ctx.meta or {})))
        except UnknownTool as unknown:
            raise MCPError(code=INVALID_PARAMS, message=str(unknown)) from None
        return wire_answer(answer)

    server: Server[Visitor] = Server(
        NAME,
        version=version,
        title="thalweg",
        instructions=INSTRUCTIONS,
        lifespan=visit,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=schemas.get,
        cache_hints={"tools/list": CacheHint(ttl_ms=LIST_TTL_MS, scope="private")},
    )
    server.middleware[:] = [Spans(), Pulses()]
    return server


def wire_tool(tool: Tool) -> WireTool:
    """The tool as tools/list shows it."""
    return WireTool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=_without_own_keywords(tool.input_schema),
        output_schema=dict(tool.output_schema),
        annotations=ToolAnnotations.model_validate({"title": tool.title, **hints(tool)}),
        _meta={"anthropic/alwaysLoad": True} if tool.always_load else None,
    )


def wire_answer(answer: Answer) -> CallToolResult:
    """The answer as a tool result: the object, and the same as text for clients that show only text."""
    return CallToolResult(
        content=[TextContent(type="text", text=answer.text)],
        structured_content=answer.body,
        is_error=answer.is_error,
        _meta=answer.meta,
    )


def _visitor(ctx: ServerRequestContext[Visitor]) -> Visitor:
    visitor = ctx.lifespan_context
    if ctx.request is not None:  # HTTP is stateless: the credential was checked for this request alone
        principal: Principal = ctx.request.state.principal
        visitor = Visitor(principal)
    if visitor.connection.client is None:
        visitor.connection.client = _client(ctx)
    return visitor


def _client(ctx: ServerRequestContext[Visitor]) -> str | None:
    params = ctx.session.client_params
    if params is not None:
        return params.client_info.name
    info = (ctx.meta or {}).get(CLIENT_INFO_META)
    return str(info.get("name")) if isinstance(info, dict) else None


def _without_own_keywords(schema: Any) -> Any:
    """The schema without our `x-` keywords, which say nothing to a client."""
    if isinstance(schema, list):
        return [_without_own_keywords(item) for item in schema]
    if isinstance(schema, dict):
        return {name: _without_own_keywords(value) for name, value in schema.items() if not name.startswith("x-error-")}
    return schema
