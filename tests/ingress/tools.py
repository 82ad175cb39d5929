"""Tools that show what the door does, without any store: they echo, wait, fail and write."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

from mcp_ingress.call import Call
from mcp_ingress.inventory import Inventory
from mcp_ingress.services import Services
from mcp_ingress.tool import Tool
from mcp_ingress.toolset import ErrorStyle, Pulse, Sessions, Toolset
from mcp_ingress.toolsets.talos.tool_calls import tool_call
from processors.talos.rules.identifiers import is_session_id
from streams.errors import Refused, Unavailable
from streams.topics import TELEMETRY

SESSION = {"type": "string", "description": "the session"}
ANY = {"type": "object", "properties": {"success": {"type": "boolean"}}, "required": ["success"]}


async def echo(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "success": True,
        "arguments": arguments,
        "request_id": call.request_id,
        "namespace": call.namespace,
        "pid": os.getpid(),
    }


async def write(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    attributes = {"talos.content": arguments["content"]}
    published = await call.publish((TELEMETRY.name, call.event("knowledge.insight", {"attributes": attributes})))
    return {"success": True, "content": arguments["content"], "freshness": published.freshness.to_json()}


async def decide(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    published = await call.publish((TELEMETRY.name, call.event("knowledge.decision", {"attributes": {}})))
    return {"success": True, "pending": await call.outcome(published) is None}


async def asked(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"success": True, "asked": call.freshness.to_json(), "traceparent": call.traceparent}


async def slow(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    await asyncio.sleep(arguments["seconds"])
    return {"success": True}


async def fail(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    how = arguments["how"]
    if how == "refused":
        raise Refused("That belief is superseded.", code="already_superseded", superseded_by="b-2", success=True)
    if how == "unavailable":
        raise Unavailable("The store does not answer.", retry_after_ms=250)
    if how == "not_json":
        return {"success": True, "value": object()}
    if how == "degraded":
        return {"success": False, "degraded": True, "message": "The log is down. The session continues."}
    raise KeyError("a secret detail")


async def die(call: Call, arguments: dict[str, Any]) -> dict[str, Any]:
    """Die while working, as often as the file that counts says."""
    path = arguments["counter"]
    with open(path, "a+") as counter:
        counter.seek(0)
        deaths = len(counter.read())
        if deaths < arguments["times"]:
            counter.write("x")
            counter.flush()
            os.kill(os.getpid(), signal.SIGKILL)
    return {"success": True, "request_id": call.request_id, "deaths": deaths}


def tool(
    name: str, handler: Any, properties: dict[str, Any], *, required: list[str] | None = None, **more: Any
) -> Tool:
    schema = {"type": "object", "properties": properties, "required": required or []}
    toolset, kind = more.pop("toolset", "demo"), more.pop("kind", "read")
    return Tool(name, toolset, name.title(), f"Shows {name}.", schema, ANY, kind, handler, **more)


DEMO = Toolset("demo", sessions=Sessions(is_session_id, tool_call))
"""The demonstration tools, whose calls leave telemetry in a Talos session."""


async def strict_pulse(services: Services, namespace: str) -> dict[str, Any]:
    return {"entropy": 0.5}


STRICT = Toolset(
    "strict",
    purpose="Strict tools fail as requests do",
    errors=ErrorStyle(
        codes={"unavailable": "star_storage"},
        plane="jsonrpc",
        rpc_codes={"already_superseded": -32110, "star_storage": -32116},
    ),
    retired={"set_star": "Call `strict_fail`, which finds it by itself."},
    pulse=Pulse("cognitive_pulse", strict_pulse),
)
"""A toolset whose errors are JSON-RPC errors, each with its pulse."""

ALL = (
    tool("echo", echo, {"text": {"type": "string"}, "session_id": SESSION, "times": {"type": "integer", "default": 1}}),
    tool(
        "write_note", write, {"content": {"type": "string"}, "session_id": SESSION}, required=["content"], kind="write"
    ),
    tool("decide", decide, {}, kind="write", timeout_s=20.5),
    tool("asked", asked, {}),
    tool("slow", slow, {"seconds": {"type": "number"}}, required=["seconds"], timeout_s=0.2),
    tool("patient", slow, {"seconds": {"type": "number"}}, required=["seconds"], timeout_s=60.0),
    tool(
        "fail",
        fail,
        {"how": {"type": "string"}, "session_id": SESSION},
        required=["how"],
        memory_operation="search_memory",
    ),
    tool(
        "die",
        die,
        {"counter": {"type": "string"}, "times": {"type": "integer"}},
        required=["counter", "times"],
        kind="write",
    ),
)


def demo_tools() -> Inventory:
    return Inventory.of(ALL, [DEMO])


def strict_tools() -> Inventory:
    failing = tool("strict_fail", fail, {"how": {"type": "string"}}, required=["how"], toolset="strict")
    return Inventory.of([*ALL, failing], [DEMO, STRICT])
