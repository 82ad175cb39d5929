"""OpenTelemetry spans of the door: one SERVER span for each message.

They do nothing until the node's operator configures an SDK. All names are here. They follow the
semantic conventions for MCP and for GenAI (tool execution and memory); an argument or a result is never an attribute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerMiddleware, ServerRequestContext
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, StatusCode

from streams.redaction import excerpt

METHOD = "mcp.method.name"
PROTOCOL_VERSION = "mcp.protocol.version"
REQUEST_ID = "jsonrpc.request.id"
RPC_STATUS = "rpc.response.status_code"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
OPERATION = "gen_ai.operation.name"
CONVERSATION = "gen_ai.conversation.id"
MEMORY_STORE = "gen_ai.memory.store.name"
ERROR_TYPE = "error.type"
EXECUTE_TOOL = "execute_tool"

_tracer = trace.get_tracer("thalweg.mcp_ingress")


class Spans(ServerMiddleware[Any]):
    """The outermost middleware: it opens a span under the caller's trace.

    The span's name is `{mcp.method.name} {gen_ai.tool.name}`.
    """

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        tool = ctx.params.get("name") if ctx.params and ctx.method == "tools/call" else None
        method, tool = excerpt(ctx.method), excerpt(tool) if isinstance(tool, str) else None
        attributes: dict[str, Any] = {METHOD: method, PROTOCOL_VERSION: ctx.protocol_version}
        if ctx.request_id is not None:
            attributes[REQUEST_ID] = excerpt(str(ctx.request_id))
        if tool is not None:
            attributes |= {TOOL: tool, TOOL_TYPE: "extension", OPERATION: EXECUTE_TOOL}
        name = f"{method} {tool}" if tool is not None else method
        with _tracer.start_as_current_span(
            name, context=_parent(ctx.meta), kind=SpanKind.SERVER, attributes=attributes, set_status_on_exception=False
        ) as span:
            try:
                return await call_next(ctx)
            except MCPError as error:
                span.set_attributes({ERROR_TYPE: str(error.error.code), RPC_STATUS: str(error.error.code)})
                span.set_status(StatusCode.ERROR)
                raise


def describe_call(*, memory_operation: str | None, toolset: str, session_id: str | None) -> None:
    """Say on the current span what the tool is to a memory, and in which session it runs."""
    span = trace.get_current_span()
    if not span.is_recording():
        return
    if memory_operation is not None:
        span.set_attributes({OPERATION: memory_operation, MEMORY_STORE: toolset})
    if session_id is not None:
        span.set_attribute(CONVERSATION, session_id)


def describe_failure(error_code: str) -> None:
    """Say on the current span that the tool answered with this error code."""
    span = trace.get_current_span()
    span.set_attribute(ERROR_TYPE, error_code)
    span.set_status(StatusCode.ERROR)


def _parent(meta: Mapping[str, Any] | None) -> Context | None:
    """The caller's trace from `_meta`; None (the ambient one) when it names none."""
    carrier = {
        name: value for name in ("traceparent", "tracestate") if isinstance(value := (meta or {}).get(name), str)
    }
    return propagate.extract(carrier) if carrier else None
