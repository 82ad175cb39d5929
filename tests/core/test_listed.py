"""What listing the tools costs a client: core's names, descriptions and arguments are few tokens, and come first."""

from __future__ import annotations

from pathlib import Path

import orjson
from mcp import Client

from mcp_ingress.inventory import find_tools
from mcp_ingress.server import build_server
from tests.ingress.parts import opened_door

MOST_TOKENS = 1_500
MOST_TOKENS_BESIDE, MOST_BYTES = 11_000, 150_000
A_TOOL = 260
"""Of a tool of any toolset, as a mean, core's output schemas included."""


async def test_core_is_listed_first_in_under_1500_tokens_and_alone_with_output_schemas(tmp_path: Path) -> None:
    async with opened_door(tmp_path, find_tools()) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            tools = (await client.list_tools()).tools
    core = [name for name, tool in find_tools().tools.items() if tool.toolset == "core"]
    assert [tool.name for tool in tools[: len(core)]] == core == ["correct", "recall", "remember", "sessions"]
    assert [tool.name for tool in tools if tool.output_schema is not None] == core
    shown = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    asked = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in shown]
    assert len(orjson.dumps(asked[: len(core)])) / 4 < MOST_TOKENS
    assert len(orjson.dumps(shown)) / 4 < A_TOOL * len(tools)


async def test_the_71_tools_beside_core_are_listed_in_under_11000_tokens_and_150_kb(tmp_path: Path) -> None:
    async with opened_door(tmp_path, find_tools()) as door:
        async with Client(build_server(door, "0"), mode="legacy") as client:
            tools = (await client.list_tools()).tools
    shown = [tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools]
    beside = [tool for tool in shown if find_tools().tools[tool["name"]].toolset != "core"]
    asked = [{name: tool[name] for name in ("name", "description", "inputSchema")} for tool in beside]
    assert len(beside) == 71 and len(orjson.dumps(asked)) / 4 < MOST_TOKENS_BESIDE
    assert len(orjson.dumps(shown)) < MOST_BYTES
