"""The server as MCP clients of both eras see it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, MCPError
from mcp.types import Implementation
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from mcp_ingress import spans
from mcp_ingress.inventory import Inventory
from mcp_ingress.server import build_server
from mcp_ingress.toolset import Pulse
from streams.topics import INVOCATIONS
from tests.ingress.lines import WAIT_S
from tests.ingress.parts import events_on, opened_door
from tests.ingress.tools import ALL, DEMO

Era = Literal["legacy", "auto"]
in_both_eras = pytest.mark.parametrize("era", ["legacy", "auto"])


@asynccontextmanager
async def connected(home: Path, era: Era = "legacy") -> AsyncIterator[Client]:
    async with opened_door(home) as door:
        async with Client(build_server(door, "1.2.3"), mode=era) as client:
            yield client


@in_both_eras
async def test_the_tools_are_listed_in_one_order_with_all_hints_and_schemas(tmp_path: Path, era: Era) -> None:
    async with connected(tmp_path, era) as client:
        tools = (await client.list_tools()).tools
        assert [tool.name for tool in tools] == sorted(tool.name for tool in ALL)
        for tool in tools:
            assert tool.annotations is not None
            given = tool.annotations.model_dump(exclude={"title"})
            assert all(isinstance(hint, bool) for hint in given.values()), given
            takes_none = not tool.input_schema["properties"]
            assert tool.input_schema.get("additionalProperties", True) is not takes_none, "each refuses other names"
            assert tool.output_schema is None


@in_both_eras
@pytest.mark.parametrize("asked", ["by the node", "by the toolset"])
async def test_output_schemas_are_listed_where_the_node_or_the_toolset_asks(
    tmp_path: Path, era: Era, asked: str
) -> None:
    toolset = replace(DEMO, lists_output_schemas=asked == "by the toolset")
    async with opened_door(tmp_path, Inventory.of(ALL, [toolset]), output_schemas=asked == "by the node") as door:
        async with Client(build_server(door, "1.2.3"), mode=era) as client:
            assert all(tool.output_schema for tool in (await client.list_tools()).tools)


@in_both_eras
async def test_a_client_that_shows_structured_content_gets_no_second_copy_as_text(tmp_path: Path, era: Era) -> None:
    async with opened_door(tmp_path, structured_clients=["claude-code"]) as door:
        server = build_server(door, "1.2.3")
        for name, is_brief in (("claude-code", True), ("claude-ai", False)):
            async with Client(server, mode=era, client_info=Implementation(name=name, version="1")) as client:
                result = await client.call_tool("echo", {"text": "a long answer"})
                assert result.structured_content is not None and len(result.content) == 1
                text = result.content[0].text  # type: ignore[union-attr]
                assert ("a long answer" not in text) == is_brief
                assert (text == "The structured content is the answer.") == is_brief
                refusal = await client.call_tool("echo", {"txet": "hi"})
                assert "Did you mean `text`" in refusal.content[0].text  # type: ignore[union-attr]


@in_both_eras
async def test_a_call_is_answered_as_object_and_text(tmp_path: Path, era: Era) -> None:
    async with connected(tmp_path, era) as client:
        result = await client.call_tool("echo", {"text": "hi"})
        assert result.structured_content is not None and result.structured_content["arguments"]["text"] == "hi"
        assert json.loads(result.content[0].text) == result.structured_content  # type: ignore[union-attr]


@in_both_eras
async def test_a_refusal_is_a_tool_result_that_is_an_error(tmp_path: Path, era: Era) -> None:
    async with connected(tmp_path, era) as client:
        result = await client.call_tool("echo", {"txet": "hi"})
        assert result.is_error and result.structured_content is not None
        assert "Did you mean `text`" in result.structured_content["message"]


@in_both_eras
async def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(tmp_path: Path, era: Era) -> None:
    async with connected(tmp_path, era) as client:
        with pytest.raises(MCPError) as caught:
            await client.call_tool("ecco", {})
        assert caught.value.error.code == -32602
        assert "Did you mean 'echo'" in caught.value.error.message


async def test_a_connections_reads_ask_for_its_own_last_writes(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as door:
        server = build_server(door, "0")
        async with Client(server, mode="legacy") as writer, Client(server, mode="legacy") as other:
            written = await writer.call_tool("write_note", {"content": "a"})
            assert written.structured_content is not None
            assert written.meta == {"thalweg/freshness": written.structured_content["freshness"]}
            mine = (await writer.call_tool("asked", {})).structured_content
            theirs = (await other.call_tool("asked", {})).structured_content
            assert mine is not None and mine["asked"] == written.structured_content["freshness"]
            assert theirs is not None and theirs["asked"] == {}


async def test_the_record_of_a_call_names_the_client(tmp_path: Path) -> None:
    async with opened_door(tmp_path) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            await client.call_tool("echo", {})
        await door.publisher.flush(WAIT_S)
        assert door.publisher.waiting == 0
        (event,) = await events_on(door.services.log, INVOCATIONS.name)  # type: ignore[arg-type]
        assert event.data["client"] == "mcp"


async def test_a_pulse_is_at_the_top_level_in_meta_and_in_the_content(tmp_path: Path) -> None:
    async def pulse(services: Any, namespace: str) -> dict[str, Any]:
        return {"entropy": 0.5}

    async with opened_door(tmp_path, Inventory.of(ALL, [replace(DEMO, pulse=Pulse("cognitive_pulse", pulse))])) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            result = await client.call_tool("echo", {})
    assert result.structured_content is not None and result.structured_content["_cognitive_pulse"] == {"entropy": 0.5}
    assert (result.meta or {})["thalweg/cognitive_pulse"] == {"entropy": 0.5}


async def test_each_call_is_a_span_named_by_method_and_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(spans, "_tracer", provider.get_tracer("test"))
    async with opened_door(tmp_path) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            await client.call_tool("fail", {"how": "refused", "session_id": "2026-01-15-demo"})
    (span,) = [span for span in exporter.get_finished_spans() if span.name == "tools/call fail"]
    assert span.kind is trace.SpanKind.SERVER
    attributes = dict(span.attributes or {})
    assert attributes["mcp.method.name"] == "tools/call" and attributes["gen_ai.tool.name"] == "fail"
    assert attributes["gen_ai.operation.name"] == "search_memory"
    assert attributes["gen_ai.conversation.id"] == "2026-01-15-demo"
    assert attributes["error.type"] == "already_superseded"
